# ruff: noqa: SIM115, UP031 - a program of the test's, for 3.8 on
"""A program with all that a process can share with others, and what it looks like before and after each attack.

Arguments: the bundle's file, a folder of its own. Standard input: JSON, `attacks` ([name, code, seconds] each) and
`without` (means of isolation not to use). Standard output, last line: JSON, `results` (name -> `answer`, `changed`).
"""

import ctypes
import fcntl
import hashlib
import json
import mmap
import os
import select
import signal
import socket
import sqlite3
import stat
import sys
import tempfile
import threading

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
MARK = "DAP_AGENT_ATTACKED"


def digest(data):
    return hashlib.sha256(bytes(data)).hexdigest()[:16]


class World:
    def __init__(self, folder):
        self.folder = folder
        self.signals = []
        for number in (signal.SIGUSR1, signal.SIGCHLD, signal.SIGIO, signal.SIGHUP, signal.SIGURG):
            signal.signal(number, lambda n, _: self.signals.append(n))
        self.victim_in, tell = os.pipe()
        self.victim = os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, self.victim_in, 0)])
        self.tell_victim = tell
        for name, text in (("text", "text\n"), ("other", "other\n"), ("log", "log\n"), ("reading", "0123456789")):
            self.write(name, text)
        self.write("mapped", "m" * 4096)
        os.mkdir(self.at("folder"))
        os.mkfifo(self.at("fifo"))
        self.buffered = open(self.at("text"), "r+")
        self.buffered.read(2)
        self.appended = open(self.at("log"), "a")
        self.appended.write("buffered once\n")  # not flushed: it must reach the file once
        self.reading = open(self.at("reading"), "rb", buffering=0)
        self.reading.read(3)
        self.locked = open(self.at("other"), "r+")
        self.directory = os.open(folder, os.O_RDONLY)
        self.db = sqlite3.connect(self.at("data.db"))
        self.db.execute("create table t(x)")
        self.db.execute("insert into t values (1)")
        self.db.commit()
        file = open(self.at("mapped"), "r+b")
        self.mapped = mmap.mmap(file.fileno(), 4096)
        self.shared = mmap.mmap(-1, 4096)
        self.shared[:5] = b"hello"
        with tempfile.TemporaryFile(dir=folder) as nameless:
            nameless.truncate(4096)
            self.nameless = mmap.mmap(nameless.fileno(), 4096)
        self.sysv = libc.shmget(0, 4096, 0o1600)  # IPC_PRIVATE, IPC_CREAT
        self.sysv_at = libc.shmat(self.sysv, None, 0)
        ctypes.memmove(self.sysv_at, b"sysv", 4)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.client = socket.create_connection(self.server.getsockname())
        self.peer = self.server.accept()[0]
        self.near, self.far = socket.socketpair()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp_sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.unix.bind(self.at("unix"))
        self.unix_server = socket.socket(socket.AF_UNIX)
        self.unix_server.bind(self.at("unix-server"))
        self.unix_server.listen(5)
        self.abstract = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.abstract.bind("\0dap-agent-test-%d" % os.getpid())
        self.address, self.udp_address = self.server.getsockname(), self.udp.getsockname()
        self.pipe = os.pipe()
        os.write(self.pipe[1], b"waiting")
        self.fifo = os.open(self.at("fifo"), os.O_RDWR | os.O_NONBLOCK)
        os.write(self.fifo, b"in the fifo")
        self.eventfd = libc.eventfd(7, 0o4000)  # EFD_NONBLOCK
        self.epoll = select.epoll()
        self.epoll.register(self.peer, select.EPOLLIN)
        self.inotify = libc.inotify_init1(0o4000)
        self.lock = threading.Lock()
        self.value = ["untouched"]
        for end in (
            self.peer,
            self.far,
            self.udp,
            self.unix,
            self.abstract,
            self.server,
            self.unix_server,
            self.client,
        ):
            end.setblocking(False)

    def at(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.at(name), "w") as file:
            file.write(text)

    def look(self):
        """All that an attack must leave as it is."""
        seen = {
            "value": list(self.value),
            "signals": list(self.signals),
            "cwd": os.getcwd(),
            "locked": self.lock.locked(),
        }
        for path, folders, files in os.walk(self.folder):
            for name in folders + files:
                full = os.path.join(path, name)
                found = os.lstat(full)
                seen["file " + os.path.relpath(full, self.folder)] = [
                    oct(found.st_mode), found.st_uid, found.st_nlink, found.st_size, found.st_mtime_ns,
                    digest(open(full, "rb").read()) if stat.S_ISREG(found.st_mode) else "",
                    os.listxattr(full, follow_symlinks=False),
                ]  # fmt: skip
        for name in ("buffered", "appended", "reading", "locked"):
            seen["offset " + name] = os.lseek(getattr(self, name).fileno(), 0, os.SEEK_CUR)
        seen["rows"] = self.db.execute("select * from t").fetchall()
        seen["memory"] = [digest(self.mapped[:]), digest(self.shared[:]), digest(self.nameless[:])]
        seen["sysv"] = digest(ctypes.string_at(self.sysv_at, 4096))
        with open("/proc/sysvipc/shm") as shm, open("/proc/sysvipc/msg") as msg, open("/proc/sysvipc/sem") as sem:
            seen["ipc"] = [sorted(line.split()[1] for line in kind) for kind in (shm, msg, sem)]
        seen["dev shm"] = sorted(name for name in os.listdir("/dev/shm") if "attacked" in name)
        for name in ("peer", "far", "udp", "unix", "abstract", "client"):
            try:
                seen["received " + name] = repr(getattr(self, name).recv(100))
            except BlockingIOError:
                seen["received " + name] = ""
        for name in ("server", "unix_server"):
            try:
                getattr(self, name).accept()
                seen["accepted " + name] = True
            except BlockingIOError:
                seen["accepted " + name] = False
        room = bytearray(4)
        waiting = []
        for fd in (self.pipe[0], self.fifo):
            fcntl.ioctl(fd, 0x541B, room)  # FIONREAD
            waiting.append(int.from_bytes(room, sys.byteorder))
        seen["in pipes"] = waiting
        seen["eventfd"] = int.from_bytes(os.read(self.eventfd, 8), sys.byteorder)
        os.write(self.eventfd, seen["eventfd"].to_bytes(8, sys.byteorder))
        with open("/proc/self/fdinfo/%d" % self.epoll.fileno()) as info:
            seen["epoll"] = [line.split()[:4] for line in info if line.startswith("tfd")]
        with open("/proc/self/fdinfo/%d" % self.inotify) as info:
            seen["inotify"] = [line.split()[:2] for line in info if line.startswith("inotify")]
        with open("/proc/locks") as locks:
            inodes = {str(os.stat(self.at(name)).st_ino) for name in ("text", "other", "log", "data.db")}
            seen["locks"] = [line for line in locks if line.split()[-3].rpartition(":")[2] in inodes]
        with open("/proc/%d/stat" % self.victim) as status:
            seen["victim"] = [
                *status.read().rpartition(")")[2].split()[:4],
                os.getpriority(os.PRIO_PROCESS, self.victim),
            ]
        for pid in (0, self.victim):
            seen["scheduling %s" % bool(pid)] = [sorted(os.sched_getaffinity(pid)), os.sched_getscheduler(pid)]
        seen["own"] = [os.getpriority(os.PRIO_PROCESS, 0), os.getpgid(0), os.getsid(0), os.umask(0o22), os.getuid()]
        os.umask(seen["own"][3])
        seen["threads"] = sorted(each.name for each in threading.enumerate())
        seen["descriptors"] = len(os.listdir("/proc/self/fd"))
        seen["nodes"] = os.uname().nodename
        seen["processes"] = self.marked()
        try:
            seen["children"] = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            seen["children"] = "none"
        return seen

    def marked(self):
        """Processes that this program has started: the environment tells."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (os.getpid(), self.victim):
                try:
                    with open("/proc/%s/environ" % name, "rb") as environ, open("/proc/%s/stat" % name) as status:
                        if MARK.encode() in environ.read() and ") Z " not in status.read():
                            found.append(int(name))
                except OSError:
                    continue
        return found


def work(world):
    target = world.folder
    main_thread = threading.get_ident()
    parent = os.getpid()
    raise ValueError("stopped here", target, main_thread, parent)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        exec(compile(file.read(), "<dap-agent>/payload.py", "exec"), {})
    asked = json.loads(sys.stdin.read())
    api = sys.modules["_dap_agent_debuggee.api"]
    stops = sys.modules["_dap_agent_debuggee"].load("stop")
    os.chdir(sys.argv[2])
    world = World(sys.argv[2])
    results = {}
    before = world.look()
    try:
        work(world)
    except ValueError as error:
        api.set_stop(stops.Stop.from_exception(error))
        for name, code, seconds in asked["attacks"]:
            arguments = {"number": 0, "code": code, "timeout": seconds, "without": asked["without"]}
            answer = json.loads(api.call("evaluate_jailed", json.dumps(arguments)))
            after = world.look()
            changed = sorted(key for key in set(before) | set(after) if before.get(key) != after.get(key))
            results[name] = {"answer": answer, "changed": {k: [before.get(k), after.get(k)] for k in changed}}
            before = after
        api.set_stop(None)
    # it goes on as if nothing had been
    world.appended.flush()
    world.buffered.write("end")
    world.buffered.flush()
    world.db.execute("insert into t values (2)")
    world.db.commit()
    world.client.send(b"all is well")
    answer = world.peer.recv(100).decode() if select.select([world.peer], [], [], 5)[0] else ""
    done = threading.Thread(target=world.value.append, args=("by a thread",))
    done.start()
    done.join()
    libc.shmctl(world.sysv, 0, None)
    os.close(world.tell_victim)
    os.kill(world.victim, signal.SIGTERM)
    os.waitpid(world.victim, 0)
    ended = {
        "log": open(world.at("log")).read(),
        "text": open(world.at("text")).read(),
        "rows": sqlite3.connect(world.at("data.db")).execute("select * from t").fetchall(),
        "answer": answer,
        "value": world.value,
    }
    print("\n" + json.dumps({"results": results, "ended": ended}))


if __name__ == "__main__":
    main()
