# ruff: noqa: E501 - each attack is a piece of code as it is sent
"""Ways to change something outside a jail: name -> code that is evaluated in `programs/attacked.py`, frame `work`.

`tries(...)` in front of each swallows errors of single steps, so that the later ones are tried, too.
"""

FILES = {
    "write a file by its path": "open(target + '/text', 'w').write('gone')",
    "append to a file by its path": "open(target + '/log', 'a').write('more')",
    "make a file": "open(target + '/new', 'w').write('new')",
    "truncate by path": "os.truncate(target + '/text', 0)",
    "open to truncate, for reading": "os.open(target + '/text', os.O_RDONLY | os.O_TRUNC)",
    "remove a file": "os.remove(target + '/text')",
    "rename a file": "os.rename(target + '/text', target + '/renamed')",
    "replace a file": "os.replace(target + '/other', target + '/text')",
    "hard link": "os.link(target + '/text', target + '/linked')",
    "symbolic link": "os.symlink('/etc/passwd', target + '/pointer')",
    "make and remove folders": "tries(lambda: os.mkdir(target + '/made'), lambda: os.rmdir(target + '/folder'))",
    "change the mode": "os.chmod(target + '/text', 0o777)",
    "change the mode by descriptor": "tries(*[lambda f=f: os.fchmod(f, 0o777) for f in everything()])",
    "change the owner": "os.chown(target + '/text', 12345, 12345)",
    "change the times": "os.utime(target + '/text', (1, 1))",
    "change times by descriptor": "tries(*[lambda f=f: os.utime(f, (1, 1)) for f in everything()])",
    "extended attributes": "os.setxattr(target + '/text', 'user.evil', b'1')",
    "extended attributes by descriptor": "tries(*[lambda f=f: os.setxattr(f, 'user.evil', b'1') for f in everything()])",
    "flags of a file": "fcntl.ioctl(os.open(target + '/text', os.O_RDONLY), 0x40086602, (0x10).to_bytes(8, 'little'))",
    "named pipe": "os.mkfifo(target + '/pipe')",
    "device node": "os.mknod(target + '/node', 0o600)",
    "write relative to an open folder": "os.open('by-folder', os.O_CREAT | os.O_WRONLY, dir_fd=world.directory)",
    "remove relative to an open folder": "os.unlink('text', dir_fd=world.directory)",
    "write where /proc shows descriptors": (
        "tries(*[lambda f=f: os.write(os.open('/proc/self/fd/%d' % f, os.O_WRONLY), b'x') for f in everything()])"
    ),
    "write relative to an open folder, from a folder of its own": (
        "import tempfile\nos.chdir(tempfile.gettempdir())\n"
        "tries(lambda: os.open('other', os.O_TRUNC | os.O_WRONLY, dir_fd=world.directory), "
        "lambda: os.unlink('text', dir_fd=world.directory))"
    ),
    "a shared temporary file": "import tempfile\nopen(tempfile.gettempdir() + '/attacked', 'w').write('x')",
}

DESCRIPTORS = {
    "write to an open file": "world.buffered.seek(0); world.buffered.write('gone'); world.buffered.flush()",
    "append to an open log": "world.appended.write('more'); world.appended.flush()",
    "truncate an open file": "os.ftruncate(world.buffered.fileno(), 0)",
    "allocate in an open file": "os.posix_fallocate(world.buffered.fileno(), 0, 99999)",
    "move the offset of an open file": "tries(*[lambda f=f: os.lseek(f, 1, 0) for f in everything()])",
    "read an open file": "world.reading.read()",
    "write to all descriptors": "tries(*[lambda f=f: os.write(f, b'evil') for f in everything()])",
    "read from all descriptors": "tries(*[lambda f=f: (os.set_blocking(f, False), os.read(f, 9)) for f in everything()])",
    "copy into an open file": ("os.sendfile(world.buffered.fileno(), os.open(__file__, os.O_RDONLY), 0, 100)"),
    "commit to the database": "world.db.execute('insert into t values (9)'); world.db.commit()",
    "open the database anew": (
        "c = sqlite3.connect(target + '/data.db'); c.execute('insert into t values (9)'); c.commit()"
    ),
    "vacuum and journal mode": "tries(lambda: world.db.execute('pragma journal_mode=wal'), lambda: world.db.execute('vacuum'))",
    "lock an open file": "fcntl.flock(world.locked, fcntl.LOCK_EX)",
    "lock by path": "fcntl.lockf(open(target + '/text', 'rb+'), fcntl.LOCK_EX)",
    "read lock by path": "f = open(target + '/text', 'rb'); fcntl.lockf(f, fcntl.LOCK_SH); fcntl.flock(f, fcntl.LOCK_EX); input()",
    "lease": "fcntl.fcntl(os.open(target + '/text', os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "signals of a descriptor": "fcntl.fcntl(world.pipe[0], fcntl.F_SETOWN, parent)",
}

MEMORY = {
    "write to a mapped file": "world.mapped[:4] = b'evil'; world.mapped.flush()",
    "write to shared memory": "world.shared[:4] = b'evil'",
    "write to a mapped file without a name": "world.nameless[:4] = b'evil'",
    "make a mapping writable": (
        "import re\nfor line in open('/proc/self/maps'):\n    if 's ' in line.split(' ', 2)[1] + ' ':\n"
        "        a, b = (int(x, 16) for x in line.split()[0].split('-'))\n"
        "        if libc.mprotect(ctypes.c_void_p(a), ctypes.c_size_t(b - a), 3) == 0: ctypes.memset(a, 7, b - a)"
    ),
    "write to System V memory": "ctypes.memset(world.sysv_at, 7, 4096)",
    "remove System V memory": "libc.shmctl(world.sysv, 0, None)",
    "attach System V memory": "a = libc.shmat(world.sysv, None, 0)\nif a and a + 1: ctypes.memset(a, 7, 4096)",
    "make System V memory": "libc.shmget(0x1234, 4096, 0o1600)",
    "System V message queue": "libc.msgget(0x1234, 0o1600)",
    "named shared memory": (
        "from multiprocessing import shared_memory\nshared_memory.SharedMemory('attacked', create=True, size=10)"
    ),
    "named semaphore": "import multiprocessing as m\ntries(lambda: m.Lock(), lambda: m.Queue().put(1))",
    "message queue": "libc.mq_open(b'/attacked', 0o102, 0o600, None)",
    "the parent's memory by /proc": "open('/proc/%d/mem' % parent, 'r+b', buffering=0).write(b'x')",
    "the parent's memory by process_vm_writev": (
        "b = ctypes.create_string_buffer(b'evil', 4)\nv = (ctypes.c_uint64 * 2)(ctypes.addressof(b), 4)\n"
        "r = (ctypes.c_uint64 * 2)(world.sysv_at, 4)\nlibc.process_vm_writev(parent, v, 1, r, 1, 0)"
    ),
    "ptrace": "libc.ptrace(16, parent, None, None); libc.ptrace(16, world.victim, None, None)",
    "the parent's descriptors": "libc.syscall(438, libc.syscall(434, parent, 0), world.pipe[0], 0)",
    "the parent's files by /proc": "tries(*[lambda f=f: os.open('/proc/%d/fd/%d' % (parent, f), 1) for f in range(40)])",
    "the parent's memory advice": "libc.syscall(440, libc.syscall(434, parent, 0), None, 0, 21, 0)",
}

NETWORK = {
    "send to the connected peer": "world.client.send(b'evil')",
    "close and shut down the connection": "world.client.shutdown(2); world.client.close()",
    "send on all sockets": "tries(*[lambda n=n: getattr(world, n).send(b'x') for n in ('near', 'client', 'udp_sender')])",
    "TCP connection": "socket.create_connection(world.address, 1)",
    "TCP fast open": "socket.socket().sendto(b'x', 0x20000000, world.address)",
    "TCP server": "socket.create_server(('127.0.0.1', 0)).getsockname()",
    "MPTCP": "s = socket.socket(2, 1, 262); s.connect(world.address)",
    "accept a connection": "world.server.accept()",
    "UDP by a new socket": "socket.socket(2, socket.SOCK_DGRAM).sendto(b'x', world.udp_address)",
    "UDP by an open socket": "world.udp_sender.sendto(b'x', world.udp_address)",
    "UDP message": "world.udp_sender.sendmsg([b'x'], [], 0, world.udp_address)",
    "raw socket": "socket.socket(2, socket.SOCK_RAW, 1)",
    "packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "name service": "socket.getaddrinfo('example.invalid', 80)",
    "unix socket with a path": "socket.socket(1).connect(target + '/unix-server')",
    "unix datagrams": "socket.socket(1, socket.SOCK_DGRAM).sendto(b'x', target + '/unix')",
    "abstract unix socket": "socket.socket(1, socket.SOCK_DGRAM).sendto(b'x', '\\0dap-agent-test-%d' % parent)",
    "datagrams of a pair": (
        "a, b = socket.socketpair(1, socket.SOCK_DGRAM); a.sendmsg([b'x'], [], 0, target + '/unix')"
    ),
    "pipe": "os.write(world.pipe[1], b'x'); os.read(world.pipe[0], 3)",
    "named pipe that others read": "os.write(os.open(target + '/fifo', os.O_WRONLY | os.O_NONBLOCK), b'x')",
    "take from a named pipe": "os.read(os.open(target + '/fifo', os.O_RDONLY | os.O_NONBLOCK), 9)",
    "eventfd": "os.write(world.eventfd, (1).to_bytes(8, 'little'))",
    "epoll": "world.epoll.unregister(world.peer); world.epoll.register(0)",
    "inotify": "libc.inotify_add_watch(world.inotify, target.encode(), 0xfff)",
    "terminal": "tries(*[lambda p=p: fcntl.ioctl(os.open(p, os.O_RDWR), 0x5412, b'x') for p in terminals()])",
    "system log": "import syslog\nsyslog.syslog('attacked')",
}

PROCESSES = {
    "signal the parent": "os.kill(parent, signal.SIGUSR1)",
    "kill another process": "os.kill(world.victim, signal.SIGKILL)",
    "signal everybody in the group": "os.killpg(os.getpgid(parent), signal.SIGUSR1)",
    "queue a signal": "libc.sigqueue(parent, int(signal.SIGUSR1), None)",
    "signal by pidfd": "libc.syscall(424, libc.syscall(434, parent, 0), int(signal.SIGUSR1), None, 0)",
    "signal a thread": "libc.syscall(234, parent, parent, int(signal.SIGUSR1))",
    "end with a signal to the parent": "libc.prctl(1, 10)\nimport threading\nthreading.Thread(target=int).start()",
    "priorities": "tries(lambda: os.setpriority(0, parent, 5), lambda: os.setpriority(0, world.victim, 5))",
    "affinity": "tries(lambda: os.sched_setaffinity(parent, {0}), lambda: os.sched_setaffinity(world.victim, {0}))",
    "scheduling": "os.sched_setscheduler(world.victim, os.SCHED_BATCH, os.sched_param(0))",
    "limits of others": "resource().prlimit(world.victim, 7, (5, 5))",
    "a program": "import subprocess\nsubprocess.run(['sh', '-c', 'echo x > %s/text; kill -USR1 %d' % (target, parent)])",
    "a program by os.system": "os.system('rm -rf %s/*; kill -9 %d' % (target, world.victim))",
    "a program that stays": (
        "import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 50; echo x > %s/late' % target], start_new_session=True)"
    ),
    "a daemon": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time\n        time.sleep(50)\n    os._exit(0)"
    ),
    "a sibling": "libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "spawn": "os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', 'echo x > %s/text' % target], dict(os.environ)), 0)",
    "an interpreter": (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'open(%r, \"w\")' % (target + '/text')])"
    ),
    "fork bomb": "n = 0\nwhile n < 3000:\n    n += 1\n    try: os.fork()\n    except OSError: pass",
    "memory bomb": "x = []\nwhile True: x.append(bytearray(2**24))",
    "memory bomb of files": "x = [os.memfd_create(str(n)) for n in range(300)] if hasattr(os, 'memfd_create') else []\nfor f in x: os.write(f, bytes(2**25))",
    "memory bomb in C": "b'x' * 2**40",
    "endless loop": "while True: pass",
    "endless loop that catches all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "endless call into C": "sum(iter(int, 1))",
    "deaf to signals": (
        "for n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nsum(iter(int, 1))"
    ),
    "a lock that is held": "world.lock.acquire(); world.lock.acquire()",
    "wait for ever": "threading.Event().wait()",
    "output flood": "while True: print('x' * 10000)",
    "error flood": "while True: os.write(2, b'x' * 10000)",
    "forged results": 'tries(*[lambda f=f: os.write(f, b\'{"kind": "result", "value": 1}\\n\') for f in range(3, 600)])',
    "close everything": "os.closerange(0, 5000)",
    "threads": "[threading.Thread(target=threading.Event().wait, name='stays').start() for _ in range(10)]",
    "exit": "os._exit(3)",
    "sys.exit": "sys.exit(3)",
    "crash": "ctypes.string_at(1)",
    "abort": "os.abort()",
    "functions at exit": "import atexit\natexit.register(os.kill, parent, 10); atexit._run_exitfuncs()",
    "change the objects": "world.value.append('changed'); world.signals.append(1); world.lock.acquire()",
    "the environment and the folder": "os.environ['X'] = 'y'; os.chdir('/'); os.umask(0)",
    "another user": "tries(lambda: os.setgid(12345), lambda: os.setuid(12345), lambda: os.setgroups([]))",
    "namespaces": "libc.unshare(0x10000000); libc.unshare(0x20000); libc.setns(0, 0)",
    "mounts": "libc.mount(b'none', target.encode(), b'tmpfs', 0, None); libc.umount2(target.encode(), 2); libc.chroot(b'/tmp')",
    "host name": "libc.sethostname(b'evil', 4)",
    "io_uring": "libc.syscall(425, 8, ctypes.create_string_buffer(200))",
    "keys": "libc.syscall(248, b'user', b'attacked', b'x', ctypes.c_size_t(1), -4)",
    "bpf and perf": "libc.syscall(321, 0, None, 0); libc.syscall(298, None, 0, -1, -1, 0)",
    "prctl": "libc.prctl(22, 0, 0, 0, 0); libc.prctl(38, 0, 0, 0, 0); libc.prctl(4, 0, 0, 0, 0)",
    "memory file": "f = os.memfd_create('x') if hasattr(os, 'memfd_create') else 0\nos.write(f, b'x') if f else 0",
    "32 bit system calls": (
        "import mmap as m\ncode = bytes.fromhex('53' 'b825000000' '89fb' 'b90a000000' 'cd80' '5b' 'c3')\n"
        "a = m.mmap(-1, 4096, prot=7)\na[:len(code)] = code\n"
        "ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(a)))(parent)"
    ),
}

SHORT = {
    "endless loop", "endless loop that catches all", "endless call into C", "deaf to signals", "a lock that is held",
    "wait for ever", "read lock by path", "fork bomb", "daemon", "take from a named pipe", "error flood", "output flood",
}  # fmt: skip
"""Attacks that end only with their time, which is then half a second."""

ATTACKS = {**FILES, **DESCRIPTORS, **MEMORY, **NETWORK, **PROCESSES}

PRELUDE = """
def tries(*steps):
    found = []
    for step in steps:
        try:
            found.append(step())
        except (OSError, ValueError, AttributeError) as error:
            found.append(repr(error))
    return found
def everything():
    return [int(name) for name in os.listdir('/proc/self/fd')]
def terminals():
    return ['/dev/tty', '/dev/console', '/dev/tty0', *('/dev/pts/' + n for n in os.listdir('/dev/pts'))]
def resource():
    import resource
    return resource
"""


def questions() -> list[tuple[str, str, float]]:
    """Name, code and seconds of each."""
    return [(name, PRELUDE + code, 0.5 if name in SHORT else 5.0) for name, code in ATTACKS.items()]
