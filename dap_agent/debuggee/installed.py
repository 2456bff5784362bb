"""Whether code is the standard library's or a package's, as the path of its file tells. No file is looked at."""

from __future__ import annotations

import os

_LIBRARY = ("<frozen", os.path.dirname(os.path.abspath(os.__file__)) + os.sep)
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def in_packages(filename: str) -> bool:
    """Whether it is an installed package's."""
    return any(part in filename for part in _PACKAGES)


def is_installed(filename: str) -> bool:
    """Whether it is the standard library's or an installed package's."""
    return filename.startswith(_LIBRARY) or in_packages(filename)
