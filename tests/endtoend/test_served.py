"""A server fails on a request, gets its fix while it runs, and answers the next request with it (issue 4)."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from dap_agent.cli import exit_status

PACKAGES = ("flask", "fastapi", "uvicorn", "pytest")
PRICES = '''\
PRICES = {"tea": 3}
asked = []


def price_of(name):
    """What it costs."""
    asked.append(name)
    return PRICES[name]
'''
FLASK = """\
import sys

from flask import Flask
from prices import asked, price_of

app = Flask("app")


@app.route("/<name>")
def answer(name):
    return f"{price_of(name)} {len(asked)}"


app.run("127.0.0.1", int(sys.argv[1]))
"""
FASTAPI = """\
import sys

import uvicorn
from fastapi import FastAPI
from prices import asked, price_of

app = FastAPI()


@app.get("/{name}")
async def answer(name: str):
    return f"{price_of(name)} {len(asked)}"


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]))
"""
PLAIN = """\
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prices import asked, price_of


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        text = f"{price_of(self.path[1:])} {len(asked)}".encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
PROPOSAL = {
    "title": "What is not sold costs nothing",
    "cause": "price_of looks up names that are not in PRICES.",
    "evidence": [{"text": "There is no such key.", "frame": 0, "expression": "name", "value": "'cake'"}],
    "edits": [
        {
            "kind": "replace_symbol",
            "file": "prices.py",
            "symbol": "price_of",
            "source": 'def price_of(name):\n    """What it costs."""\n    asked.append(name)\n'
            "    return PRICES.get(name, 0)\n",
        }
    ],
    "test": {
        "file": "test_prices.py",
        "source": 'from prices import price_of\n\n\ndef test_unknown():\n    assert price_of("cake") == 0\n',
    },
}


def free_port() -> int:
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def get(port: int, path: str) -> str:
    """The answer's text, or its status."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
            return str(answer.read().decode()).strip('"')
    except urllib.error.HTTPError as error:
        return str(error.code)
    except (ConnectionError, urllib.error.URLError, OSError) as error:
        return type(error).__name__


def begun(port: int, path: str, within: float = 30) -> str:
    """The answer as soon as the server is there."""
    until = time.monotonic() + within
    while (found := get(port, path)) in ("URLError", "ConnectionResetError") and time.monotonic() < until:
        time.sleep(0.05)  # polling: a server tells nobody that it listens
    return found


def prepared(folder: Path, program: str) -> Path:
    """The model's script, after the files are written."""
    (folder / "prices.py").write_text(PRICES)
    (folder / "app.py").write_text(program)
    (folder / "pyproject.toml").write_text("")
    script = folder.parent / "turns.json"
    script.write_text(
        json.dumps({"turns": [{"text": "Fix it.", "calls": [{"name": "propose", "arguments": PROPOSAL}]}]})
    )
    return script


def play(trace, folder: Path, python: Path, program: str) -> "tuple[list[str], int, str, dict]":
    script = prepared(folder, program)
    port = free_port()
    report = folder.parent / "report.json"
    words = ["run", "--python", str(python), "--model", f"scripted:{script}", "--fix", "auto", "--json", str(report)]
    process = trace.start(*words, "app.py", str(port), cwd=folder)
    answers = [begun(port, "tea"), get(port, "cake"), get(port, "cake"), get(port, "tea")]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    trace.assert_nothing_is_left()
    return answers, process.returncode, err, json.loads(report.read_text())


def check(answers: "list[str]", status: int, err: str, report: "dict") -> None:
    # the third has the new code, and what the program remembered before it
    assert answers[0] == "3 1" and answers[2:] == ["0 3", "3 4"], (answers, err)
    assert answers[1] in ("500", "RemoteDisconnected"), "the request that failed stays failed"
    assert "the running program has the new code (price_of)." in err, err
    assert "the program went on with the fix and did not fail in that way again." in err
    assert "running the program again" not in err
    assert status == exit_status.APPLIED
    assert report["rerun"] is None
    functions = [each for file in report["reloaded"]["files"] for each in file["functions"]]
    assert [(each["name"], each["outcome"]) for each in functions] == [("price_of", "swapped")]


def test_an_attached_server_goes_on_with_the_fix(trace, tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    script = prepared(folder, PLAIN)
    port, debugged = free_port(), free_port()
    words = [sys.executable, "-m", "debugpy", "--listen", f"127.0.0.1:{debugged}", "app.py", str(port)]
    server = subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        assert begun(port, "tea") == "3 1"
        command = ["attach", "--connect", f"127.0.0.1:{debugged}", "--model", f"scripted:{script}", "--fix", "auto"]
        process = trace.start(*command, cwd=folder)
        for line in process.stderr:
            if "waiting for an uncaught exception" in line:
                break
        assert get(port, "cake") == "RemoteDisconnected"
        _, err = process.communicate(timeout=60)
        assert "the running program has the new code (price_of)." in err
        assert process.returncode == exit_status.APPLIED
        assert [get(port, "cake"), get(port, "tea")] == ["0 3", "3 4"]
    finally:
        server.kill()
        server.wait()


def test_a_plain_server_goes_on_with_the_fix(trace, tmp_path):
    (tmp_path / "shop").mkdir()
    check(*play(trace, tmp_path / "shop", Path(sys.executable), PLAIN))


@pytest.mark.network
@pytest.mark.parametrize("program", [FLASK, FASTAPI], ids=["flask", "fastapi"])
def test_a_web_application_goes_on_with_the_fix(trace, tmp_path, all_interpreters, with_packages, program):
    (tmp_path / "shop").mkdir()
    check(*play(trace, tmp_path / "shop", with_packages(Path(all_interpreters["3.13"]), PACKAGES), program))
