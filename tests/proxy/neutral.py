"""Make a recording that can be played on any machine out of the logs that `recorder.py` wrote.

    python -m tests.proxy.neutral --client NAME --folder DIR --logs LOG... [--companion WORD...] > recordings/x.jsonl

NAME is the editor with its version, DIR the folder that it had open. `--companion` is the command of a program that
the editor attached to, with `${dir}`, `${python}` and `${port}` in it. `--needs` names a capability that debugpy has
not. The logs are those of one scenario: its sessions, in the order in which they began. What comes out is described in
`player.py`.
"""

import argparse
import json
import re
import sys

# What a client may wait for. The rest (output, modules, sockets, threads that end) comes when it comes.
MARKS = {"initialized", "stopped", "continued", "exited", "terminated", "debugpyWaitingForServer"}
HANDLES = {"frameId", "threadId", "variablesReference", "targetId", "sourceReference"}  # taken from earlier answers
READY = "ready"  # what a program prints when it wants to be waited for
THINKING = 0.35  # seconds of silence after which it was the user who acted, not the editor


class Marks:
    """What a client has received: names that do not depend on the machine, each with its message."""

    def __init__(self):
        self.known = {}  # mark -> message
        self.waiting = []  # marks since the client has last spoken
        self._counts = {}

    def received(self, message):
        """The message's mark; None if nobody can wait for it."""
        kind = message["type"]
        if kind == "response":
            return self._add(f"response {message['request_seq']}", message)
        name = message.get("event") or message["command"]
        if kind == "event" and name not in MARKS:
            body = message.get("body") or {}
            if name == "output" and body.get("category") == "stdout" and READY in body["output"]:
                name = "output ready"
            elif name == "thread" and body["reason"] == "started":
                name = "thread started"
            else:
                return None
        self._counts[name] = self._counts.get(name, 0) + 1
        return self._add(f"{name} {self._counts[name]}", message)

    def _add(self, mark, message):
        self.known[mark] = message
        self.waiting.append(mark)
        return mark

    def taken(self):
        """The marks since the last time."""
        waiting, self.waiting = self.waiting, []
        return waiting


class Session:
    """One log on its way to neutral lines."""

    def __init__(self, number, log):
        self.number, self.log = number, log
        self.marks = Marks()
        self.starting = next((m for m in self.messages("client") if m.get("command") in ("launch", "attach")), {})
        self.process = self.starting.get("arguments", {}).get("subProcessId")
        self.configuration = None  # of a child: what `startDebugging` said
        self.parent = None
        self.numbers = {}  # the client's seq -> the number of its line
        self.reverse = {}  # seq of an adapter's request -> its mark
        self.said = 0  # messages of the client
        self.closed = False

    def messages(self, side):
        return [line["message"] for line in self.log if line["from"] == side and "message" in line]


def neutral(logs, *, client, folder, companion=(), needs=None):
    """The lines of a recording.

    Args:
        logs: parsed lines of `recorder.py`, a list for each session.
        client: who was recorded, with its version.
        folder: what the client had open; replaced by `${dir}`.
        companion: command of the program that was attached to.
        needs: a capability that the client's behaviour depends on and debugpy has not.
    """
    sessions = [Session(number, log) for number, log in enumerate(logs, 1)]
    for child in sessions:
        for one in sessions:
            for message in one.messages("adapter"):
                configuration = message.get("arguments", {}).get("configuration", {})
                if child.process is not None and configuration.get("subProcessId") == child.process:
                    child.parent, child.configuration = one, configuration
    more = {"companion": list(companion), "needs": needs}
    yield {"client": client, **{name: value for name, value in more.items() if value}}
    merged = sorted(((line.get("at", 0), s.number, i) for s in sessions for i, line in enumerate(s.log)))
    last, begun = 0, set()
    for at, number, index in merged:
        session, line = sessions[number - 1], sessions[number - 1].log[index]
        if number not in begun:
            begun.add(number)
            yield _begin(session, sessions)
        if line["from"] == "adapter":
            if "message" in line:
                _receive(session, line["message"])
            last = at
            continue
        if session.closed:
            continue
        out = {"session": number, "after": session.marks.taken()}
        if at - last > THINKING:
            for other in sessions:
                if other is not session and not other.closed:
                    out["after"] += [f"{other.number}: {mark}" for mark in other.marks.waiting]
        if not out["after"]:
            del out["after"]
        if "end" in line:
            session.closed = True
            yield {**out, "close": True}
        else:
            yield _line(session, {**out, **_said(session, line["message"])}, folder)
    for session in sessions:  # an editor kills its adapter once it is done with it
        if not session.closed:
            yield {"session": session.number, "after": session.marks.taken(), "close": True}


def _begin(session, sessions):
    """The line with which a session begins."""
    out = {"session": session.number}
    if session.parent:
        requests = [m for m in session.parent.messages("adapter") if m.get("command") == "startDebugging"]
        numbers = [m["arguments"]["configuration"]["subProcessId"] for m in requests]
        return {**out, "child_of": session.parent.number, "child": sorted(numbers).index(session.process) + 1}
    before = [one for one in sessions if one.number < session.number and not one.parent]
    if before:
        out["after"] = [f"{before[-1].number}: closed"]
    if "connect" in session.starting.get("arguments", {}):
        out["connect"] = "companion"
    return {**out, "begin": True}


def _receive(session, message):
    if message["type"] == "response":
        message = {**message, "request_seq": session.numbers.get(message["request_seq"], 0)}
    mark = session.marks.received(message)
    if message["type"] == "request":
        session.reverse[message["seq"]] = mark


def _said(session, message):
    session.said += 1
    if message["type"] == "request":
        session.numbers[message["seq"]] = session.said
        out = {"request": message["command"]}
        return {**out, "arguments": message["arguments"]} if "arguments" in message else out
    out = {"response": session.reverse[message["request_seq"]]}
    for name in ("success", "body", "message"):
        if name in message and message[name] not in (True, {}):
            out[name] = message[name]
    return out


def _line(session, out, folder):
    arguments = out.get("arguments")
    if isinstance(arguments, dict):
        if session.configuration:
            arguments = {name: _inherited(session, name, value) for name, value in arguments.items()}
        out["arguments"] = {name: _handle(session, name, value) for name, value in arguments.items()}
    return json.loads(_texts(json.dumps(out), folder))


def _inherited(session, name, value):
    same = session.configuration.get(name) == value and name != "request"
    return {"$": ["configuration", name]} if same else value


def _handle(session, name, value):
    """A number that only that session knows, as the way to it in what the client got before."""
    if name == "connect" and isinstance(value, dict) and "$" not in value:
        return {**value, "port": "${port}"}
    if name == "listen" and isinstance(value, dict):
        return {**value, "port": 0}
    if name not in HANDLES or type(value) is not int or value == 0:
        return value
    known = list(reversed(session.marks.known.items()))
    stops = [(mark, message) for mark, message in known if mark.startswith("stopped")]
    for mark, message in [*stops, *known]:  # the thread of the newest stop, if it can be
        way = _way(message.get("body"), name, value)
        if way is not None:
            return {"$": [mark, *way]}
    raise ValueError(f"nobody has told the client of {name} {value}")


def _way(body, name, value):
    names = {"frameId": ("stackFrames", "id"), "targetId": ("targets", "id"), "threadId": ("threads", "id")}
    if isinstance(body, dict) and body.get(name) == value:
        return [name]
    holder, key = names.get(name, (None, name))
    for part in (holder,) if holder else ("scopes", "variables", "stackFrames"):
        for index, one in enumerate(body.get(part, ()) if isinstance(body, dict) else ()):
            found = one.get("source", {}).get(key) if name == "sourceReference" else one.get(key)
            if found == value:
                place = [part, f"name={one['name']}" if part == "variables" else index]
                return [*place, "source", key] if name == "sourceReference" else [*place, key]
    return None


def _texts(text, folder):
    text = text.replace(folder, "${dir}")
    text = re.sub(r'("__sessionId": )"[^"$]+"', r'\1"${session}"', text)
    return re.sub(r'("(?:shellProcessId|processId)": )\d+', r'\1"${pid}"', text)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--client", required=True)
    options.add_argument("--folder", required=True)
    options.add_argument("--needs")
    options.add_argument("--logs", nargs="+", required=True)
    options.add_argument("--companion", nargs=argparse.REMAINDER, default=())
    given = options.parse_args()
    logs = []
    for path in given.logs:
        with open(path, encoding="utf-8") as file:
            logs.append([json.loads(line) for line in file])
    for line in neutral(logs, client=given.client, folder=given.folder, companion=given.companion, needs=given.needs):
        text = json.dumps(line)
        machine = re.search(r'"/(?!bin/)[^"]*', text)
        if machine:
            raise SystemExit(f"a path of this machine is left: {machine.group()}")
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
