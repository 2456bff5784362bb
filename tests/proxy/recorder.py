"""Stand between an editor and a debug adapter, and write down every message of both.

    python recorder.py LOG -- COMMAND args...      a debug adapter as an editor starts it, on standard input and output
    python recorder.py LOG --connect HOST:PORT     a program that listens, or a child of a session that is recorded

LOG gets one JSON object a line: `{"from": "client" | "adapter", "at": seconds, "message": {...}}`, in the order in
which they came through, and `{"from": ..., "at": seconds, "end": true}` for a side that hung up. The clock is the
machine's, so that the logs of several sessions can be laid beside each other. The bytes pass unchanged. `neutral.py`
beside this file makes a recording of it that can be played on any machine. Only the standard library is used, so that
any interpreter of the editor will do.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time


class Log:
    """One file, a line a message, from two threads."""

    def __init__(self, path):
        self._file, self._lock = open(path, "w", encoding="utf-8"), threading.Lock()  # noqa: SIM115

    def add(self, side, **what):
        with self._lock:
            self._file.write(json.dumps({"from": side, "at": time.monotonic(), **what}) + "\n")
            self._file.flush()


def relay(side, log, read, write, close):
    """Pass on what *read* gives until it gives nothing more, and note the messages in it."""
    buffer = b""
    while data := read():
        buffer += data
        while (whole := message(buffer)) is not None:  # noted before it is passed on: no answer can come earlier
            body, buffer = whole
            log.add(side, message=json.loads(body))
        try:
            write(data)
        except OSError:
            break
    log.add(side, end=True)
    close()


def message(buffer):
    """The first message in *buffer* and the rest; None if it is not whole yet."""
    head, found, rest = buffer.partition(b"\r\n\r\n")
    if not found:
        return None
    sizes = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    size = int(sizes[0])
    return (rest[:size], rest[size:]) if len(rest) >= size else None


def write_all(descriptor, data):
    """A pipe may take less than it is given."""
    while data:
        data = data[os.write(descriptor, data) :]


def main(path, how, *command):
    """Run until one side ends; the exit status is the adapter's."""
    log = Log(path)
    if how == "--connect":
        host, _, port = command[0].rpartition(":")
        there = socket.create_connection((host, int(port)))
        process, read, write = None, lambda: there.recv(1 << 16), there.sendall

        def close():
            there.shutdown(socket.SHUT_WR)

    else:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        into, out = process.stdin.fileno(), process.stdout.fileno()
        read, write, close = (lambda: os.read(out, 1 << 16)), (lambda data: write_all(into, data)), process.stdin.close
    threading.Thread(target=relay, args=("client", log, lambda: os.read(0, 1 << 16), write, close), daemon=True).start()
    relay("adapter", log, read, lambda data: write_all(1, data), lambda: None)
    return process.wait() if process else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
