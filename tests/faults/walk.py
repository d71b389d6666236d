"""The walk: every step of a lease, and at each one somebody dies."""

import collections
import time

from fail import STOP
from world import wait_until

VICTIMS = ("server", "agent", "jailer", "worker", "box", "all")
OWN = {"server": "server", "store": "server", "sequencer": "server", "agent": "agent", "jailer": "jailer",
       "worker": "worker", "init": "box"}
# Reached only by a node that starts again after its jailer was killed under a running box.
RECOVERY = ("jailer.recover", "jailer.recovered", "agent.recover")

Case = collections.namedtuple("Case", "step victim")


def steps(names):
    return [name for name in names if not name.startswith(("disk.", "mig."))]


def own_victim(step):
    return OWN[step.split(".")[0]]


def reach(world, step):
    """Starts a lease and lives it until somebody stops at the step. (threads, result of the request)"""
    fail = world.fail
    if step in RECOVERY:
        thread, result = world.start_job()
        thread.join()
        wait_until(lambda: world.is_ready(result["lease"]), "the job")
        fail.arm(step, STOP)
        world.strike("jailer")
        wait_until(lambda: fail.stopped(step), f"{step} to be reached")
        return [], result
    fail.arm(step, STOP)
    thread, result = world.start_job()
    threads = [thread]
    end = time.monotonic() + 30
    while not fail.stopped(step):
        assert time.monotonic() < end, f"{step} was not reached\n{world.rf.logs()}"
        if len(threads) == 1 and "lease" in result and world.is_ready(result["lease"]):
            threads.append(world.end_job(result["lease"]))
        time.sleep(0.002)
    return threads, result


def outcome(world, result, resumed):
    if "lease" not in result:
        return "refused"
    lease = world.lease(result["lease"])
    assert lease["state"] == "closed", lease
    if result["lease"] in resumed or (lease["outcome"], lease.get("exit_code")) == ("exited", 0):
        return "resumed"
    return "ended"


def run_case(world, case):
    """One life with one death in it. What became of the lease; "-" when there was nobody to kill."""
    world.refresh()
    world.fail.forget_stopped(case.step)
    threads, result = reach(world, case.step)
    struck = world.strike(case.victim)
    world.fail.disarm()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "the command line hangs"
    resumed = world.settle()
    became = outcome(world, result, resumed)
    world.check()
    if not struck:
        return "-"
    # A job outlives the server and every worker; nobody's work is lost for them.
    if case.victim in ("server", "worker") and case.step not in RECOVERY:
        assert became in ("resumed", "refused"), f"{became}: {world.lease(result['lease'])}"
    return became


def table(results, names):
    """Steps by victims, for people."""
    width = max(map(len, names)) + 2
    lines = ["step".ljust(width) + "".join(victim.ljust(10) for victim in VICTIMS)]
    for step in steps(names):
        cells = (results.get(Case(step, victim), "") for victim in VICTIMS)
        lines.append(step.ljust(width) + "".join(cell.ljust(10) for cell in cells))
    counts = collections.Counter(cell for cell in results.values() if cell != "-")
    lines.append(f"{sum(counts.values())} deaths: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return "\n".join(lines)
