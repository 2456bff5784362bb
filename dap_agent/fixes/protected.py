"""Which files of a workspace are kept from the model: secrets, version control, installed packages."""

import re
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

_SECRET_NAMES = (
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    ".dockercfg",
    ".vault-token",
    "credentials",
    "credentials.json",
    "client_secret*.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "secrets.json",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.gpg",
)
_SECRET_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker"})
_SAMPLES = frozenset({"example", "sample", "template", "dist", "defaults"})
_VCS = frozenset({".git", ".hg", ".svn", ".bzr", ".jj"})
_PACKAGES = frozenset({"site-packages", "dist-packages"})
_STDLIB = re.compile(r"(?:python|pypy)\d+\.\d+t?")


def secret_reason(path: PurePath) -> str | None:
    """Why a file is kept from the model altogether, or None.

    Args:
        path: absolute, or relative to the workspace's root.
    """
    parts = [part.lower() for part in path.parts]
    if not parts:
        return None
    folder = next((part for part in parts if part in _VCS), None)
    if folder is not None:
        return f"it belongs to the version control folder {folder}"
    folder = next((part for part in parts[:-1] if part in _SECRET_FOLDERS), None)
    if folder is not None:
        return f"the folder {folder} holds credentials"
    name = parts[-1]
    if name.startswith(".env.") and name.split(".")[-1] not in _SAMPLES:
        return "it may hold secrets"
    if not name.endswith(".py") and any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES):
        return "it may hold secrets"
    return None


def installed_part(relative: PurePath) -> str | None:
    """The part of a path that makes it an installed package's or the standard library's file, or None."""
    parts = relative.parts
    for index, part in enumerate(parts[:-1]):
        if part in _PACKAGES:
            return part
        if index and parts[index - 1] in {"lib", "lib64"} and _STDLIB.fullmatch(part):
            return f"{parts[index - 1]}/{part}"
    return None


def installed_in(file: str) -> tuple[Path | None, tuple[str, ...]]:
    """The folder of installed packages that holds *file*, and the parts of its path from there; (None, ()) if none."""
    parts = Path(file).parts
    for index, part in enumerate(parts[:-1]):
        if part in _PACKAGES:
            return Path(*parts[: index + 1]), parts[index + 1 :]
    return None, ()


def package_folder(file: str) -> Path | None:
    """The folder of the installed package that *file* is in; None for a module of its own and for other files."""
    site, inner = installed_in(file)
    return site / inner[0] if site is not None and len(inner) > 1 else None


def inside_venv(root: Path, path: Path) -> Path | None:
    """The virtual environment below *root* that holds *path*, or None."""
    for parent in path.parents:
        if parent == root or root not in parent.parents:
            return None
        if (parent / "pyvenv.cfg").is_file():
            return parent
    return None
