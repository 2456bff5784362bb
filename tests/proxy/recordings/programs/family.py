import multiprocessing
import subprocess
import sys


def work(number):
    total = number + 1
    return total


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        work(20)
    elif sys.argv[1] == "subprocess":
        subprocess.run([sys.executable, __file__, "child"], check=True)
    else:
        process = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(1,))
        process.start()
        process.join()
    print("done", flush=True)
