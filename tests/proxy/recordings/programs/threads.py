import threading


def count(name):
    total = len(name)
    return total


def main():
    threads = [threading.Thread(target=count, args=(name,), name=name) for name in ("first", "second")]
    for thread in threads:
        thread.start()
        thread.join()
    print("done", flush=True)


main()
