"""Goal: a clock that jumps a day forward or back ends no job before its time and none after it,
loses no node, and spoils no proof; certificates are renewed by themselves when their time comes.

Method: the programs' clock (OpenSSL's too) is moved in shared memory while they run.
"""

import pytest

from world import VISION, wait_until

DAY = 24 * 3600


@pytest.mark.parametrize("jump", [
    pytest.param(DAY, id="forward", marks=pytest.mark.whole), pytest.param(-DAY, id="back")])
def test_a_jump_under_running_jobs(world, jump):
    thread, long = world.start_job()
    thread.join()
    wait_until(lambda: world.is_ready(long["lease"]), "the long job")
    short = world.rf.ok("run", *VISION, "--detach", "--timeout", "5s", "--", "sleep", "600").strip()
    wait_until(lambda: world.lease(short)["state"] == "active", "the short job")
    world.fail.move_clock(jump)
    world.wait_healthy()  # nodes are silent until they report in the new time
    # By the time the short one's limit has ended it, the long one has been looked at many times.
    wait_until(lambda: world.lease(short)["state"] == "closed", "the short job's end")
    assert world.lease(short)["outcome"] == "timeout"
    assert world.is_ready(long["lease"])
    assert world.rf.ok("run", *VISION, "--", "echo", "new") == "new\n"
    world.settle()
    world.check()
    world.strike("jailer")  # and one that starts again in the new time
    world.check()
    assert world.rf.ok("run", *VISION, "--", "echo", "again") == "again\n"
    world.check()
    world.fail.move_clock(0)
    world.wait_healthy()
    assert world.rf.ok("run", *VISION, "--", "echo", "back") == "back\n"
    world.check()
    world.passed = True


@pytest.mark.whole
def test_a_jump_while_cards_wait_for_their_scrub(world):
    """A receipt that bears an earlier time than the last use is no proof; it is no crime either."""
    world.fail.arm("jailer.scrub", 1)
    world.strike("agent")
    wait_until(lambda: world.fail.stopped("jailer.scrub"), "the scrub after the start")
    world.fail.move_clock(-DAY)
    world.fail.disarm()
    world.check()
    world.fail.move_clock(0)
    world.check()
    world.passed = True


def test_a_node_renews_its_certificate_in_time(world):
    def renewals():
        return len(world.rf.json("audit", "list", "--action", "node.renew"))

    before = renewals()
    world.fail.move_clock(5 * DAY)  # of its seven, less than a third is left
    wait_until(lambda: renewals() == before + 1, "the renewal")
    world.fail.move_clock(10 * DAY)  # the first one has expired by now
    wait_until(lambda: renewals() == before + 2, "the next renewal")
    world.wait_healthy()
    assert world.rf.ok("run", *VISION, "--", "echo", "renewed") == "renewed\n"
    world.check()
    world.fail.move_clock(0)  # all of it was a mistake of the clock: the node is not locked out
    world.wait_healthy()
    assert world.rf.ok("run", *VISION, "--", "echo", "back") == "back\n"
    world.strike("agent")
    world.check()
    world.passed = True
