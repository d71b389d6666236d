"""Goal: whoever dies at whichever step of a lease, the lease is resumed or ended, its GPU is
scrubbed before anybody else gets it, the log holds every acknowledged entry once, nothing is left.

Method: a failpoint stops the program that comes to the step; somebody is killed with SIGKILL while it
stands there; it is let go, and the world is checked. `make test` kills at each step the program that
is at it; `make faults` kills everybody at every step. A step that no lease comes to fails the test.
"""

import random

import pytest

import walk
import world as worlds
from conftest import ALL, RESULTS, SEED


def cases():
    try:
        names = walk.steps(worlds.failpoint_names())
    except (AssertionError, OSError):
        return []
    chosen = [walk.Case(step, victim) for step in names for victim in (walk.VICTIMS if ALL else [walk.own_victim(step)])]
    random.Random(SEED).shuffle(chosen)
    return chosen


CASES = cases()


def test_there_is_something_to_walk():
    assert len(CASES) >= 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.step}-{case.victim}")
def test_death(world, case):
    became = walk.run_case(world, case)
    if not ALL:
        assert became != "-", "nobody was there to be killed"
    RESULTS[case] = became
    world.passed = True


def test_nothing_is_left_when_it_is_stopped(world):
    world.down()
    world.check_gone()
    world.up()
    world.check()
    world.passed = True
