"""python -m tally FILE: the average consumption of each meter; FILE may be - for the standard input."""

import sys

from tally.readings import read
from tally.report import report


def main() -> None:
    name = sys.argv[1]
    with open(name, encoding="utf-8") if name != "-" else sys.stdin as lines:
        for line in report(read(lines)):
            print(line)
    print("done")


main()
