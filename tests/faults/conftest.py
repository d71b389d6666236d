"""What the fault tests share: one attacked Ringfence at a time, a seed, and the table at the end."""

import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

SEED = int(os.environ.get("FAULT_SEED") or random.SystemRandom().randrange(1 << 32))
ALL = os.environ.get("FAULT_ALL") == "1"
ROUNDS = int(os.environ.get("FAULT_ROUNDS") or (30 if ALL else 2))
ONLY = os.environ.get("FAULT_ONLY", "")
RESULTS = {}  # Case -> what became of its lease


def pytest_configure(config):
    config.addinivalue_line("markers", "whole: only in `make faults`")


def pytest_collection_modifyitems(items, config):
    def is_wanted(item):
        return (ALL or "whole" not in item.keywords) and ONLY in item.name

    config.hook.pytest_deselected(items=[item for item in items if not is_wanted(item)])
    items[:] = [item for item in items if is_wanted(item)]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.sections.append(("replay", f"FAULT_SEED={SEED} FAULT_ONLY='{item.name}' make faults"))


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"FAULT_SEED={SEED}")
    if RESULTS:
        import walk
        import world

        terminalreporter.write_line(walk.table(RESULTS, world.failpoint_names()))


class Shared:
    """The Ringfence of a module. One that failed a test is thrown away: the next gets a fresh one."""

    world = None

    def get(self):
        import world

        if self.world is None:
            self.world = world.World(seed=SEED)
            self.world.up()
        return self.world

    def drop(self):
        if self.world is not None:
            self.world.close()
            self.world = None


def need_boxes():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")


@pytest.fixture(scope="module")
def shared():
    need_boxes()
    holder = Shared()
    yield holder
    holder.drop()


@pytest.fixture
def world(shared):
    """Checked for what is left when a test that passed is over; thrown away after one that did not."""
    one = shared.get()
    missing = [node["missing"] for node in one.rf.json("node", "list")]
    if any(missing):
        pytest.skip(f"this machine cannot run boxes: {missing}")
    one.passed = False
    yield one
    if not one.passed:
        shared.drop()
