#!/usr/bin/python3
# Goal: no run with a failed, missing or (in CI) skipped test can look green.
# Method: results as ctest and pytest write them, each verdict once; the exit status and last line.

import io
import os
import tempfile
import unittest

import test_summary

CTEST = """<testsuite name="x">{}</testsuite>"""
PASSED = '<testcase name="os/A.B" status="run"><system-out>ok</system-out></testcase>'
CORPUS = '<testcase name="fuzz-corpus/f" status="run"><system-out/></testcase>'
SKIPPED = (
    '<testcase name="os/A.S" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
    "<system-out>[ RUN      ] A.S\n/x/a.cc:4: Skipped\nnot root:\n run as root\n[  SKIPPED ] A.S"
    "</system-out></testcase>"
)
FAILED = (
    '<testcase name="os/A.F" status="fail"><failure message=""/>'
    "<system-out>/x/a.cc:7: Failure\n[  FAILED  ] A.F</system-out></testcase>"
)
CRASHED = (
    '<testcase name="os/A.C" status="fail"><failure message=""/>'
    "<system-out>[ RUN      ] A.C\n</system-out></testcase>"
)
NOT_BUILT = (
    '<testcase name="fuzz-corpus/g" status="notrun">'
    '<skipped message="Unable to find executable"/><system-out/></testcase>'
)
DISABLED = '<testcase name="os/A.D" status="disabled"><system-out>Disabled</system-out></testcase>'
PYTEST = """<testsuites><testsuite name="pytest">{}</testsuite></testsuites>"""
PY_PASSED = '<testcase classname="tests.e2e.test_a" name="test_b" />'
PY_SKIPPED = '<testcase classname="t" name="s"><skipped type="pytest.skip" message="no runc"/></testcase>'
PY_FAILED = '<testcase classname="t" name="f"><failure message="assert 1 == 2&#10;more"/></testcase>'
PY_ERROR = '<testcase classname="t" name="e"><error message="failed on setup"/></testcase>'


class SummaryTest(unittest.TestCase):
    def summarize(self, *texts, ci=False):
        outcomes = []
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(texts):
                path = os.path.join(folder, f"{number}.xml")
                if text is not None:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                outcomes += test_summary.read_results(path)
        out = io.StringIO()
        status = test_summary.report(outcomes, ci, out)
        return status, out.getvalue(), out.getvalue().rstrip("\n").split("\n")[-1]

    def test_all_passed(self):
        status, _, last = self.summarize(
            CTEST.format(PASSED + CORPUS), PYTEST.format(PY_PASSED), ci=True
        )
        self.assertEqual((status, last), (0, "3 passed, 0 failed, 0 skipped"))

    def test_skips_are_named_with_their_reason_and_fail_in_ci(self):
        texts = CTEST.format(PASSED + SKIPPED + DISABLED), PYTEST.format(PY_SKIPPED)
        status, text, last = self.summarize(*texts)
        self.assertEqual((status, last), (0, "1 passed, 0 failed, 3 skipped"))
        self.assertIn("os/A.S: not root: run as root", text)
        self.assertIn("os/A.D: disabled", text)
        self.assertIn("t::s: no runc", text)
        status, _, last = self.summarize(*texts, ci=True)
        self.assertEqual((status, last), (1, "1 passed, 0 failed, 3 skipped"))

    def test_each_kind_of_failure_fails(self):
        for case, reason in ((FAILED, "at a.cc:7"), (CRASHED, "crash"), (NOT_BUILT, "executable")):
            status, text, last = self.summarize(CTEST.format(PASSED + case))
            self.assertEqual((status, last), (1, "1 passed, 1 failed, 0 skipped"), case)
            self.assertIn(reason, text)
        for case in PY_FAILED, PY_ERROR:
            status, _, last = self.summarize(PYTEST.format(PY_PASSED + case))
            self.assertEqual((status, last), (1, "1 passed, 1 failed, 0 skipped"), case)

    def test_a_suite_that_did_not_run_fails(self):
        for broken in None, "", CTEST.format(PASSED)[:-9], CTEST.format(""), PYTEST.format(""):
            status, _, last = self.summarize(CTEST.format(PASSED), broken)
            self.assertEqual((status, last), (1, "1 passed, 1 failed, 0 skipped"), broken)


if __name__ == "__main__":
    unittest.main()
