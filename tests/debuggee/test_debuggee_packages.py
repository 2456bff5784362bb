"""Whose code a frame is, and which version of which package: in the debuggee, by files alone."""

import time
from pathlib import Path

import pytest

from dap_agent.debuggee import packages


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment with 300 packages and some of every odd kind."""
    folder = tmp_path / "lib" / "python3.9" / "site-packages"
    folder.mkdir(parents=True)

    def add(name: str, version: str, files: "list[str]", top_level: "str | None" = None, record: bool = True) -> None:
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nlong text\n", "utf-8"
        )
        if record:
            (info / "RECORD").write_text("".join(f"{file},sha256=x,10\n" for file in files), "utf-8")
        if top_level is not None:
            (info / "top_level.txt").write_text(top_level + "\n", "utf-8")
        for file in files:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("", "utf-8")

    for i in range(300):
        add(
            f"dist-{i}",
            f"1.{i}",
            [f"dist_{i}/__init__.py", f"dist_{i}/a.py"] + [f"dist_{i}/m{k}.py" for k in range(20)],
        )
    add("PyYAML", "6.0.1", ["yaml/__init__.py", "yaml/loader.py"], "yaml\n_yaml")
    add("google-cloud-storage", "2.1.0", ["google/cloud/storage/blob.py"])
    add("google-auth", "2.20.0", ["google/auth/token.py"])
    add("six", "1.16.0", ["six.py"])
    add("requests", "2.31.0", ["requests/api.py"])
    add("requests-oauthlib", "1.3.1", ["requests_oauthlib/core.py"])
    add("no-record", "3.0", ["no_record/core.py"], record=False)
    egg = folder / "legacy-0.9-py3.9.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 1.1\nName: legacy\nVersion: 0.9\n", "utf-8")
    (egg / "top_level.txt").write_text("legacy_module\n", "utf-8")
    (folder / "legacy_module").mkdir()
    (folder / "legacy_module" / "core.py").write_text("", "utf-8")
    (folder / "unknown").mkdir()
    (folder / "unknown" / "x.py").write_text("", "utf-8")
    return folder


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("dist_17/m3.py", ("dist-17", "1.17")),
        ("yaml/loader.py", ("PyYAML", "6.0.1")),
        ("google/cloud/storage/blob.py", ("google-cloud-storage", "2.1.0")),
        ("google/auth/token.py", ("google-auth", "2.20.0")),
        ("six.py", ("six", "1.16.0")),
        ("requests/api.py", ("requests", "2.31.0")),
        ("requests_oauthlib/core.py", ("requests-oauthlib", "1.3.1")),
        ("no_record/core.py", ("no-record", "3.0")),
        ("legacy_module/core.py", ("legacy", "0.9")),
        ("unknown/x.py", ("unknown", None)),
        ("zipped-1.2-py3.8.egg/zipped/x.py", ("zipped", "1.2")),
    ],
)
def test_package_and_version(site: Path, file: str, expected: "tuple[str, str | None]") -> None:
    begun = time.perf_counter()
    origin = packages.origin_of(str(site / file))
    assert time.perf_counter() - begun < 1
    assert origin.package == expected
    assert not origin.user
    assert not origin.stdlib


def test_user_stdlib_frozen(tmp_path: Path) -> None:
    import json

    assert packages.origin_of(str(tmp_path / "app.py")).user
    assert packages.origin_of("<string>").user
    assert packages.origin_of(json.__file__).stdlib
    assert packages.origin_of("<frozen importlib._bootstrap>").stdlib
    assert not packages.origin_of("<dap-agent>/debuggee/api.py").user


def test_an_editable_install_is_the_users(tmp_path: Path) -> None:
    project = tmp_path / "project" / "src"
    (project / "mine.egg-info").mkdir(parents=True)
    (project / "mine").mkdir()
    (project / "mine" / "__init__.py").write_text("", "utf-8")
    (project / "mine" / "core.py").write_text("", "utf-8")
    assert packages.origin_of(str(project / "mine" / "core.py")).user


def test_pip_install_target_is_a_package(tmp_path: Path) -> None:
    vendor = tmp_path / "vendor"
    (vendor / "thing").mkdir(parents=True)
    for name in ("__init__.py", "core.py"):
        (vendor / "thing" / name).write_text("", "utf-8")
    (vendor / "thing-4.5.dist-info").mkdir()
    (vendor / "thing-4.5.dist-info" / "RECORD").write_text("thing/__init__.py,,\nthing/core.py,,\n", "utf-8")
    (vendor / "own.py").write_text("", "utf-8")
    assert packages.origin_of(str(vendor / "thing" / "core.py")).package == ("thing", "4.5")
    assert packages.origin_of(str(vendor / "own.py")).user


def test_the_tests_own_packages_are_found() -> None:
    import importlib.metadata

    import pytest as module

    assert packages.origin_of(module.__file__).package == ("pytest", importlib.metadata.version("pytest"))
