"""Whether new source compiles: under our own Python, and under the debuggee's."""

import base64
import json
import subprocess
import warnings
from collections.abc import Mapping
from pathlib import Path

_CHILD = r"""
import base64, json, sys, warnings
warnings.simplefilter("ignore")
out = {}
for name, text in json.load(sys.stdin).items():
    try:
        compile(base64.b64decode(text), name, "exec", dont_inherit=True)
    except SyntaxError as error:
        out[name] = [error.lineno, str(error.msg), error.text or ""]
    except Exception as error:
        out[name] = [None, str(error), ""]
print(json.dumps(out))
print("%d.%d" % sys.version_info[:2])
"""


def syntax_problem(name: str, data: bytes) -> str | None:
    """Why *data* does not compile under the Python that runs us, in one sentence; None when it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape in the user's file is not ours to report
        try:
            compile(data, name, "exec", dont_inherit=True)
        except SyntaxError as error:
            return _sentence(name, error.lineno, error.msg, error.text or "", "")
        except (ValueError, RecursionError, MemoryError) as error:
            return _sentence(name, None, str(error), "", "")
    return None


def syntax_problems_under(python: Path, sources: Mapping[str, bytes]) -> dict[str, str] | None:
    """The same under another interpreter, for several files.

    Returns:
        The problems by file; None when that interpreter cannot be asked.
    """
    payload = json.dumps({name: base64.b64encode(data).decode("ascii") for name, data in sources.items()})
    try:
        done = subprocess.run(
            [str(python), "-I", "-S", "-c", _CHILD],
            input=payload,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        answer, version = done.stdout.splitlines()
        found: dict[str, list[str]] = json.loads(answer)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return {
        name: _sentence(name, int(line) if line is not None else None, message, text, f" under Python {version}")
        for name, (line, message, text) in found.items()
    }


def _sentence(name: str, line: int | None, message: str, text: str, where: str) -> str:
    at = f" at line {line}" if line is not None else ""
    shown = f": {text.strip()!r}" if text.strip() else ""
    return f"{name} would not compile{where} after the edits: {message}{at}{shown}; correct the new source."
