"""A job that computes, crashes in its last step and is fixed, ends well without computing again (issue 4)."""

import json
from pathlib import Path

import jsonschema
import pytest

from dap_agent.agent import journal
from dap_agent.cli import exit_status

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "schemas" / "report.schema.json").read_text(encoding="utf-8"))["properties"]["continued"]

JOB = """\
import pathlib


def compute():
    with open("computed", "a") as counter:
        counter.write("x")
    return [{"name": "a", "total": 12, "count": 3}, {"name": "b", "total": 0, "count": 0}]


def mean(row):
    return row["total"] / row["count"]


def report(rows):
    lines = []
    for row in rows:
        lines.append(f"{row['name']} {mean(row)}")
    pathlib.Path("report.txt").write_text("\\n".join(lines))
    return lines


def main():
    rows = compute()
    print("computed", flush=True)
    print(*report(rows), sep="\\n")


if __name__ == "__main__":
    main()
"""
TEST = "from job import mean\n\n\ndef test_empty():\n    assert mean({'total': 0, 'count': 0}) == 0\n"


def turns(symbol, source, tested=TEST):
    proposal = {
        "title": "An empty row has the mean 0",
        "cause": "The last row has no entries, and mean divides by their number.",
        "evidence": [{"text": "The count is 0.", "frame": 0, "expression": "row['count']", "value": "0"}],
        "edits": [{"kind": "replace_symbol", "file": "job.py", "symbol": symbol, "source": source}],
        "test": {"file": "test_mean.py", "source": tested},
    }
    return {"turns": [{"text": "The last row is empty.", "calls": [{"name": "propose", "arguments": proposal}]}]}


MEAN = turns("mean", 'def mean(row):\n    return row["total"] / row["count"] if row["count"] else 0\n')


class Job:
    def __init__(self, trace, folder):
        self._trace = trace
        self._script = folder / "turns.json"
        self.root = folder / "work"
        self.root.mkdir()
        (self.root / "pyproject.toml").write_text("[project]\nname = 'job'\n", encoding="utf-8")

    def run(self, python, played, *options, job=JOB):
        (self.root / "job.py").write_text(job, encoding="utf-8")
        self._script.write_text(json.dumps(played), encoding="utf-8")
        file = self.root.parent / "report.json"
        process = self._trace.start(
            "run", "--python", python, "--model", f"scripted:{self._script}", "--fix", "auto", "--continue",
            "--json", str(file), *options, "job.py",
            environment={"PYTHONPATH": str(ROOT)}, cwd=self.root,
        )  # fmt: skip
        out, err = process.communicate(timeout=100)
        self._trace.assert_nothing_is_left()
        report = json.loads(file.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(SCHEMA).validate(report["continued"])
        return process.returncode, out, err, report

    @property
    def computed(self):
        return len((self.root / "computed").read_text(encoding="utf-8"))


@pytest.fixture
def job(trace, tmp_path):
    return Job(trace, tmp_path)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_it_goes_on_with_the_fix_and_computes_once(version, all_interpreters, job):
    status, out, err, report = job.run(all_interpreters[version], MEAN)
    assert status == 0, err
    assert job.computed == 1
    assert out.splitlines() == ["computed", "a 4.0", "b 0"]
    assert (job.root / "report.txt").read_text(encoding="utf-8") == "a 4.0\nb 0"
    assert "if row[" in (job.root / "job.py").read_text(encoding="utf-8")
    continued = report["continued"]
    assert continued["allowed"] and continued["passed"] and continued["rehearsal"] == "returned"
    assert (continued["frame"], continued["function"], report["rerun"]) == (0, "mean", None)
    assert "the program goes on: mean (frame 0) is called again. Rehearsed in a copy of the program" in err
    assert "the program went on with it to its end (exit status 0)" in err
    records = journal.read(Path(report["journal"]))
    kinds = [record["kind"] for record in records]
    assert kinds[-3:] == ["applied", "continued", "continued"]


def test_an_ancestor_is_restarted_if_the_fix_is_there(all_interpreters, job):
    source = JOB[JOB.index("def report") : JOB.index("def main")].rstrip() + "\n"
    source = source.replace("in rows:", 'in [row for row in rows if row["count"]]:')
    tested = "import job\n\n\ndef test_rows():\n    assert job.report([{'name': 'b', 'total': 0, 'count': 0}]) == []\n"
    status, out, err, report = job.run(all_interpreters["3.12"], turns("report", source, tested))
    assert status == 0, err
    assert job.computed == 1
    assert out.splitlines() == ["computed", "a 4.0"]
    assert (report["continued"]["frame"], report["continued"]["function"]) == (1, "report")


def test_a_version_that_is_not_on_the_list_runs_again(all_interpreters, job):
    status, _, err, report = job.run(all_interpreters["3.8"], MEAN)
    assert status == exit_status.FIXED, err
    assert "that is possible on CPython 3.11, 3.12, 3.13, this is" in report["continued"]["reason"]
    assert report["continued"]["passed"] is None and report["rerun"]["passed"]
    assert "the program can't go on with the fix: No frame can be restarted" in err
    assert "Restart the program instead." in err and job.computed == 2


def test_what_crashes_in_the_rehearsal_is_not_done_in_the_program(all_interpreters, job):
    """The second call for the same row kills the process."""
    helper = "import ctypes\nimport pathlib\n\nSEEN = []\n\n\ndef seen(row):\n    if id(row) in SEEN:\n"
    helper += "        ctypes.string_at(0)\n    SEEN.append(id(row))\n"
    text = JOB.replace("import pathlib\n", helper).replace(
        '    return row["total"]', '    seen(row)\n    return row["total"]'
    )
    fixed = 'def mean(row):\n    seen(row)\n    return row["total"] / (row["count"] or 1)\n'
    status, _, err, report = job.run(all_interpreters["3.13"], turns("mean", fixed), job=text)
    continued = report["continued"]
    assert (continued["allowed"], continued["rehearsal"]) == (False, "crashed"), err
    assert "it crashed (SIGSEGV). Restart the program instead." in continued["reason"]
    assert status == exit_status.FIXED and report["rerun"]["passed"] and job.computed == 2, err


def test_what_differs_from_the_trial_in_the_rehearsal_is_not_done_in_the_program(all_interpreters, job):
    """The trial calls the function as things are at the stop; the restart comes after the `finally` of what failed."""
    text = JOB.replace(
        """    return row["total"] / row["count"]
""",
        """    global digits
    try:
        return round(row["total"] / row["count"], digits)
    finally:
        digits = digits if row["count"] else None


digits = 1
""",
    )
    last = "def last(rows):\n    return [mean(row) for row in rows][0]\n"
    text = text.replace("def main():", last + "\n\ndef main():").replace("*report(rows)", "last(rows)")
    fixed = last.replace("in rows]", 'in rows if row["count"]]')
    tested = "import job\n\n\ndef test_rows():\n    rows = [{'total': 0, 'count': 0}, {'total': 1, 'count': 1}]\n"
    tested += "    assert job.last(rows) == 1\n"
    status, _, err, report = job.run(all_interpreters["3.12"], turns("last", fixed, tested), job=text)
    continued = report["continued"]
    assert (continued["allowed"], continued["rehearsal"]) == (False, "differs"), err
    assert "last returned 4, and in its trial a value of the type float. Restart the program" in continued["reason"]
    assert status == exit_status.FIXED and report["rerun"]["passed"] and job.computed == 2, err
