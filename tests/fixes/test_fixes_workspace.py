"""The workspace: what may be read and edited, which files it has, and search with bounds."""

import os
import shutil
import subprocess
import sysconfig
import time
from pathlib import Path

import pytest

from dap_agent.fixes.failures import OutsideWorkspace, ProtectedFile, UnreadableFile, WorkspaceError
from dap_agent.fixes.ignoring import walk
from dap_agent.fixes.workspace import Workspace, find_root


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def names(workspace: Workspace) -> list[str]:
    return [workspace.relative(path) for path in workspace.files()]


def test_inside_and_outside(tmp_path: Path) -> None:
    root = tree(tmp_path / "proj", {"a/b.py": "x"})
    workspace = Workspace(root)
    assert workspace.resolve("a/b.py") == root / "a/b.py"
    assert workspace.resolve(str(root / "a/../new.py")) == root / "new.py"
    for path in ("../x.py", "/etc/passwd", "a/../../x.py", str(tmp_path / "projx/a.py"), "", "a\0b", "."):
        with pytest.raises(OutsideWorkspace):
            workspace.resolve(path)


def test_symlinks_are_resolved(tmp_path: Path) -> None:
    root = tree(tmp_path / "proj", {"a.py": "x", ".env": "KEY=1"})
    tree(tmp_path, {"secret.txt": "s"})
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "folder").symlink_to(tmp_path)
    (root / "in.py").symlink_to("a.py")
    (root / "hidden.txt").symlink_to(".env")
    (root / "loop").symlink_to("loop")
    workspace = Workspace(root)
    assert workspace.resolve("in.py") == root / "a.py"
    for path in ("out.txt", "folder/secret.txt", "folder/new.txt"):
        with pytest.raises(OutsideWorkspace):
            workspace.resolve(path)
        with pytest.raises(OutsideWorkspace):
            workspace.read(path)
    with pytest.raises(ProtectedFile):
        workspace.read("hidden.txt")
    with pytest.raises(WorkspaceError):
        workspace.read("loop")
    assert names(workspace) == ["a.py", "in.py"]
    assert workspace.search("KEY").matches == ()


@pytest.mark.parametrize(
    "name",
    [".env", ".env.local", "deploy/.env", ".git/config", ".netrc", "id_rsa", "server.pem", "a.key", ".npmrc", ".pypirc",
     ".aws/credentials", ".ssh/config", "secrets.yaml", ".ENV"],
)  # fmt: skip
def test_secrets_are_neither_read_nor_edited_nor_found(tmp_path: Path, name: str) -> None:
    workspace = Workspace(tree(tmp_path, {name: "needle", "a.py": ""}))
    for use in (workspace.resolve, workspace.read):
        with pytest.raises(ProtectedFile, match="neither read nor edited"):
            use(name)
    assert names(workspace) == ["a.py"]
    assert workspace.search("needle").matches == ()


def test_names_that_only_look_like_secrets(tmp_path: Path) -> None:
    for name in (
        ".env.example",
        "credentials.py",
        "env.py",
        ".github/workflows/ci.yml",
        "keys/test_key.py",
        ".gitignore",
    ):
        tree(tmp_path, {name: "x"})
        assert Workspace(tmp_path).read(name) == "x"


def test_installed_packages_are_read_only_unless_named(tmp_path: Path) -> None:
    inside = ".venv/lib/python3.12/site-packages/dep/core.py"
    root = tree(tmp_path / "proj", {inside: "x", "env/pyvenv.cfg": "", "env/bin/tool.py": "y", "a.py": ""})
    other = tree(tmp_path / "usr/lib/python3/dist-packages/pkg", {"m.py": "z"})
    workspace = Workspace(root)
    for path in (inside, "env/bin/tool.py"):
        assert workspace.read(path)
        with pytest.raises(ProtectedFile, match="read-only"):
            workspace.resolve(path)
    assert workspace.read(str(other / "m.py")) == "z"
    with pytest.raises(OutsideWorkspace, match="installed package"):
        workspace.resolve(str(other / "m.py"))
    stdlib = str(Path(sysconfig.get_path("stdlib")) / "json/decoder.py")
    assert "raw_decode" in workspace.read(stdlib)
    with pytest.raises(OutsideWorkspace, match="installed package"):
        workspace.resolve(stdlib)
    named = Workspace(root, also=[other, root / ".venv/lib/python3.12/site-packages/dep"])
    assert named.resolve(str(other / "m.py")) == other / "m.py"
    assert named.resolve(inside) == root / inside
    assert Workspace(other).resolve("m.py") == other / "m.py"


def test_binary_huge_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "b.bin").write_bytes(b"a\0b")
    (tmp_path / "big.txt").write_bytes(b"a" * (2 * 1024 * 1024 + 1))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    workspace = Workspace(tmp_path)
    for name, words in {
        "b.bin": "binary", "big.txt": "larger than 2 MiB", "folder": "is a folder", "none.py": "does not exist",
        "pipe": "not a regular file",
    }.items():  # fmt: skip
        with pytest.raises(UnreadableFile, match=words):
            workspace.read(name)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\r\n")
    assert workspace.read("latin.txt") == "caf\udce9\n"


@pytest.mark.parametrize("marker", ["pyproject.toml", "setup.py", "setup.cfg", ".git/HEAD", "pytest.ini", "tox.ini"])
def test_find_root_takes_the_nearest_marker(tmp_path: Path, marker: str) -> None:
    tree(tmp_path, {"pyproject.toml": "", f"proj/{marker}": "", "proj/src/app/main.py": ""})
    assert find_root(tmp_path / "proj/src/app/main.py") == tmp_path / "proj"
    assert find_root(tmp_path / "proj/src/app") == tmp_path / "proj"


def test_find_root_never_takes_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tree(tmp_path / "home", {"pyproject.toml": "", "scripts/main.py": ""})
    monkeypatch.setenv("HOME", str(home))
    assert find_root(home / "scripts/main.py") == home / "scripts"
    assert find_root(home / "main.py") == home  # the program's own folder, having nothing else
    assert find_root(Path("/x.py")) == Path("/")


@pytest.mark.parametrize("pattern", ["/demo/", "demo", "*", "*.py\n/demo/", "/out/"])
def test_a_workspace_that_is_ignored_as_a_whole_has_its_files(tmp_path: Path, pattern: str) -> None:
    folder = "out/demo" if "out" in pattern else "demo"
    tree(tmp_path, {".git/HEAD": "", ".gitignore": pattern + "\n"})
    root = tree(tmp_path / folder, {".gitignore": "*.log\n", "a.py": "", "b/c.py": "", "x.log": ""})
    assert names(Workspace(root)) == [".gitignore", "a.py", "b/c.py"]


def test_files_respect_gitignore(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            ".git/info/exclude": "excluded.txt\n",
            ".gitignore": "*.log\nbuild/\n/only_top.txt\n!keep.log\n# comment\n\n",
            "a.log": "", "keep.log": "", "build/x.py": "", "only_top.txt": "", "excluded.txt": "",
            "sub/.gitignore": "!a.log\nlocal.py\n", "sub/a.log": "", "sub/b.log": "", "sub/local.py": "",
            "sub/only_top.txt": "", "sub/build/y.py": "",
            "__pycache__/m.pyc": "", "node_modules/x.js": "", "venv/pyvenv.cfg": "", "venv/x.py": "", ".tox/x.py": "",
        },
    )  # fmt: skip
    assert names(Workspace(tmp_path)) == [
        ".gitignore", "keep.log", "sub/.gitignore", "sub/a.log", "sub/only_top.txt",
    ]  # fmt: skip
    # a workspace below the repository's root: the patterns above it count
    assert names(Workspace(tmp_path / "sub")) == [".gitignore", "a.log", "only_top.txt"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")
def test_files_are_those_that_git_sees(tmp_path: Path) -> None:
    patterns = [
        "*.tmp",
        "/top",
        "dir/",
        "a/**/z.txt",
        "!a/b/z.txt",
        "**/deep",
        "x?.py",
        "[ab].md",
        "\\#odd",
        "sp ace",
        "c/*",
    ]
    tree(
        tmp_path,
        {
            ".gitignore": "\n".join(patterns) + "\n", "c/.gitignore": "!keep\n", "c/keep": "", "c/drop": "",
            "1.tmp": "",
            "top": "", "s/top": "", "dir/f": "", "s/dir/f": "", "a/z.txt": "", "a/b/z.txt": "", "a/b/c/z.txt": "",
            "p/deep/f": "", "x1.py": "", "x12.py": "", "a.md": "", "c.md": "", "#odd": "", "sp ace": "", "ok.py": "",
        },
    )  # fmt: skip
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert names(Workspace(tmp_path)) == sorted(listed.stdout.strip("\0").split("\0"), key=lambda n: n.split("/"))


@pytest.mark.skipif(shutil.which("git") is None, reason="asks git's index")
def test_the_copy_gets_what_imports_need(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            ".gitignore": "*.so\n_version.py\ndata/\nbuild/\n*.log\n",
            "pkg/__init__.py": "", "pkg/fast.so": "", "pkg/_version.py": "", "pkg/x.log": "", "build/y.so": "",
            "data/tracked.json": "", "data/other.json": "",
        },
    )  # fmt: skip
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-f", "data/tracked.json"], cwd=tmp_path, check=True)
    copied = [entry.path for entry in walk(tmp_path, for_copy=True)]
    assert copied == [
        ".gitignore", "data", "data/tracked.json", "pkg", "pkg/__init__.py", "pkg/_version.py", "pkg/fast.so",
    ]  # fmt: skip


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one = 1\n\x0c\ntwo = 2\n")
    workspace = Workspace(tmp_path)
    assert [match.line for match in workspace.search("two").matches] == [3]
    assert [match.line for match in workspace.search("t[w]o").matches] == [3]


def test_search(tmp_path: Path) -> None:
    workspace = Workspace(
        tree(tmp_path, {"a.py": "def total(x):\n    return x\n", "tests/test_a.py": "total(1)\n", "c.bin": "total\0"})
    )
    found = workspace.search("total")
    assert [(m.file, m.line, m.text) for m in found.matches] == [
        ("a.py", 1, "def total(x):"),
        ("tests/test_a.py", 1, "total(1)"),
    ]
    assert [m.file for m in workspace.search(r"total\(\d").matches] == ["tests/test_a.py"]
    assert [m.file for m in workspace.search("total", "tests/*").matches] == ["tests/test_a.py"]
    assert [m.file for m in workspace.search("total", "test_*.py").matches] == ["tests/test_a.py"]
    assert [m.file for m in workspace.search("total", "**/*.py").matches] == ["a.py", "tests/test_a.py"]
    assert [m.file for m in workspace.search("total(1", regex=True).matches] == ["tests/test_a.py"]
    assert "no valid regular expression" in workspace.search("total(1").note
    assert [m.line for m in workspace.search(".", limit=1).matches] == [1]
    assert "first 1 matches" in workspace.search("total", limit=1).note
    assert "empty" in workspace.search("").note
    assert workspace.search("x(", regex=False).note == ""


def test_search_is_bounded_in_time(tmp_path: Path) -> None:
    workspace = Workspace(tree(tmp_path, {"a.txt": "needle a\n", "b.txt": "a" * 60 + "!\n"}))
    start = time.monotonic()
    found = workspace.search(r"needle|(a+)+$", seconds=1.0)
    assert time.monotonic() - start < 10
    assert [m.file for m in found.matches] == ["a.txt"]
    assert "Stopped after 1 s" in found.note


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("src/**/*.py", ["src/a.py", "src/in/b.py"]),
        ("**/b.py", ["src/in/b.py"]),
        ("{root}/src/*.py", ["src/a.py", "src/in/b.py"]),
        ("dep/*.py", ["{site}/dep/__init__.py"]),
    ],
)
def test_globs_are_names_that_can_be_read(tmp_path: Path, glob: str, found: list[str]) -> None:
    root, site = tmp_path / "project", tmp_path / "lib/python3.11/site-packages"
    for path in (root / "src/a.py", root / "src/in/b.py", site / "dep/__init__.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    places = {"root": root.resolve(), "site": site.resolve()}
    hits = Workspace(root, also=[site / "dep"]).search("x = 1", glob.format(**places)).matches
    assert [hit.file for hit in hits] == [name.format(**places) for name in found]


def test_an_installed_copy_of_a_file_of_the_workspace(tmp_path: Path) -> None:
    root, site = tmp_path / "project", tmp_path / "project/.venv/lib/python3.11/site-packages"
    for path in (root / "src/pkg/a.py", root / "flat/b.py", site / "pkg/a.py", site / "flat/b.py", site / "other/c.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    workspace = Workspace(root)
    copies = ("pkg/a.py", "flat/b.py", "other/c.py")
    originals = [root.resolve() / "src/pkg/a.py", root.resolve() / "flat/b.py", None]
    assert [workspace.original_of(str(site / name)) for name in copies] == originals
    assert workspace.original_of(str(root / "src/pkg/a.py")) is None
    assert Workspace(root, also=[site / "pkg"]).original_of(str(site / "pkg/a.py")) is None
