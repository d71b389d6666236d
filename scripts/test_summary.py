#!/usr/bin/python3
"""Adds up JUnit results of ctest and pytest and prints what a person needs to see.

Each argument is a results file that must exist and hold at least one test: a missing or empty one
counts as a failure, so that a suite that never ran cannot look green. Skipped tests are named with
their reason. The last line is "N passed, N failed, N skipped". Exits 1 when anything failed, or,
with CI=true, was skipped.
"""

import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, namedtuple

Outcome = namedtuple("Outcome", "suite name verdict reason")  # verdict: passed, failed, skipped

SUITES = {  # by the first part of a ctest test's name; every other is a unit test
    "fuzz-corpus": "fuzz corpora",
    "layers": "layer checks",
    "scripts": "scripts",
    "faults": "faults",
}


def gtest_skip_reason(output):
    """What a GTEST_SKIP() said: the lines after "file:line: Skipped", up to the next marker."""
    reason = re.search(r": Skipped\n(.*?)(?:\n\n|\n\[)", output, re.DOTALL)
    return (" ".join(reason.group(1).split()) if reason else "") or "no reason given"


def gtest_failure_reason(output):
    """Where a GoogleTest test first failed, or that it ended without saying so."""
    place = re.search(r"([^/\s]+:\d+): Failure", output)
    if place:
        return f"at {place.group(1)}"
    if "[ RUN      ]" in output and "[  FAILED  ]" not in output:
        return "ended in the middle: a crash or a timeout"
    return "see above"


def of_ctest(case):
    name = case.get("name", "?")
    suite = SUITES.get(name.split("/")[0], "unit tests")
    output = case.findtext("system-out") or ""
    failure = case.find("failure")
    if failure is not None or case.get("status") == "fail":
        return Outcome(suite, name, "failed", gtest_failure_reason(output))
    skipped = case.find("skipped")
    if skipped is not None or case.get("status") in ("notrun", "disabled"):
        message = skipped.get("message", "") if skipped is not None else ""
        if "[  FAILED  ]" in output:  # a test that failed before it skipped has failed
            return Outcome(suite, name, "failed", "failed, then skipped")
        if message.startswith("SKIP_"):
            return Outcome(suite, name, "skipped", gtest_skip_reason(output))
        if case.get("status") == "disabled":
            return Outcome(suite, name, "skipped", "disabled")
        return Outcome(suite, name, "failed", f"could not be run: {message}")
    return Outcome(suite, name, "passed", "")


def of_pytest(case):
    name = f"{case.get('classname', '?').replace('.', '/')}::{case.get('name', '?')}"
    suite = "faults" if name.startswith("tests/faults/") else "end-to-end"
    for bad in ("failure", "error"):
        found = case.find(bad)
        if found is not None:
            message = found.get("message", "").strip().split("\n")[0]
            return Outcome(suite, name, "failed", message)
    skipped = case.find("skipped")
    if skipped is not None:
        return Outcome(suite, name, "skipped", skipped.get("message") or "no reason given")
    return Outcome(suite, name, "passed", "")


def read_results(path):
    suite = os.path.basename(path)
    try:
        tree = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        return [Outcome(suite, path, "failed", f"no results: {error}")]
    outcomes = []
    for group in tree.iter("testsuite"):
        read = of_pytest if group.get("name") == "pytest" else of_ctest
        outcomes += [read(case) for case in group.findall("testcase")]
    return outcomes or [Outcome(suite, path, "failed", "no test was run")]


def report(outcomes, ci, out):
    """Prints the summary; returns the exit status."""
    for verdict in ("skipped", "failed"):
        chosen = [outcome for outcome in outcomes if outcome.verdict == verdict]
        if chosen:
            print(f"\n{verdict}:", file=out)
        for outcome in chosen:
            print(f"  {outcome.name}: {outcome.reason}", file=out)
    print(file=out)
    counts = Counter((outcome.suite, outcome.verdict) for outcome in outcomes)

    def line(of):
        return ", ".join(f"{of(verdict)} {verdict}" for verdict in ("passed", "failed", "skipped"))

    for suite in dict.fromkeys(outcome.suite for outcome in outcomes):
        print(f"{suite + ':':<14}{line(lambda verdict: counts[suite, verdict])}", file=out)
    total = Counter(outcome.verdict for outcome in outcomes)
    if ci and total["skipped"]:
        print("CI=true: a skipped test fails the run", file=out)
    print(line(lambda verdict: total[verdict]), file=out)
    return 1 if total["failed"] or (ci and total["skipped"]) else 0


def main(paths):
    if not paths:
        sys.exit("usage: test_summary.py RESULTS.xml...")
    outcomes = [outcome for path in paths for outcome in read_results(path)]
    return report(outcomes, os.environ.get("CI") == "true", sys.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
