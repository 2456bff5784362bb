"""Runs until its stdin ends; each line read is one request, "bad" ones fail in a way that the loop survives or not."""

import sys
import threading


def handle(request):
    size = len(request)
    if request == "bad":
        raise ValueError("cannot handle %r of size %d" % (request, size))
    return request.upper()


def worker(request):
    handle(request)


print("ready", flush=True)
for line in sys.stdin:
    request = line.strip()
    thread = threading.Thread(target=worker, args=(request,))
    thread.start()
    thread.join()
    print("served", request, flush=True)
print("done", flush=True)
