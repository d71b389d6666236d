"""Goal: whatever is killed, leases end, slices are scrubbed before reuse and the log verifies.

Method: kill -9 of each process while a job runs; each test with a Ringfence of its own.
"""

import os
import pathlib
import shutil
import signal
import tempfile

import pytest

from conftest import children_of, start, wait_until

VISION = ("-t", "acme/research/vision")


@pytest.fixture
def fresh():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o755)
    instance = start(state)
    if any(node["missing"] for node in instance.json("node", "list")):
        instance.down()
        shutil.rmtree(state)
        pytest.skip("this machine cannot run boxes")
    yield instance
    instance("down")
    shutil.rmtree(state, ignore_errors=True)


def active_job(ringfence):
    lease = ringfence.ok("run", *VISION, "--detach", "--", "sh", "-c", "echo on; sleep 600").strip()
    wait_until(lambda: ringfence.json("lease", "show", lease)["state"] == "active", "the job")
    return lease


def is_healthy(ringfence):
    done = ringfence("status")
    return done.returncode == 0


def check_after(ringfence, lease):
    wait_until(lambda: ringfence("status").returncode == 0, "health\n" + ringfence.logs())

    def closed():
        found = ringfence.json("lease", "show", lease)
        return found if found["state"] in ("closed", "quarantined") else None

    found = wait_until(closed, "the lease to close")
    assert found["state"] == "closed" and found["receipts"], found
    assert ringfence.ok("run", *VISION, "--", "echo", "again") == "again\n"
    wait_until(lambda: ringfence.json("status")["gpus"]["free"] == 8, "all GPUs to be free again")
    assert ringfence("audit", "verify").returncode == 0
    left = [cg for cg in pathlib.Path("/sys/fs/cgroup").rglob(f"*{lease}*")]
    assert not left, left
    assert lease not in pathlib.Path("/proc/mounts").read_text()


@pytest.mark.parametrize("victim", ["agent", "jailer"])
def test_kill_on_the_node(fresh, victim):
    lease = active_job(fresh)
    pids = fresh.pid_of("ringfence-jailer")
    if victim == "agent":
        pids = [pid for pid in children_of(pids)
                if b"agent" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    assert pids, "no such process"
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    check_after(fresh, lease)


def test_kill_the_server_under_a_running_job(fresh):
    lease = fresh.ok("run", *VISION, "--detach", "--", "sh", "-c", "sleep 5; echo survived").strip()
    wait_until(lambda: fresh.json("lease", "show", lease)["state"] == "active", "the job")
    for pid in fresh.pid_of("ringfence", "server"):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_healthy(fresh), "the server to be back\n" + fresh.logs())
    wait_until(lambda: fresh.json("lease", "show", lease)["state"] == "closed", "the job to end")
    assert fresh.ok("lease", "logs", lease) == "survived\n"
    check_after(fresh, lease)


def test_down_and_up_again_finds_its_state(fresh):
    fresh.ok("run", *VISION, "--", "true")
    before = fresh.json("lease", "list", "--all")
    size = fresh.json("status")["audit"]["entries"]
    fresh.down()
    assert fresh("status").returncode == 5
    assert not fresh.pid_of("ringfence") and not fresh.pid_of("ringfence-jailer")
    fresh.up()
    assert [one["id"] for one in fresh.json("lease", "list", "--all")] == [one["id"] for one in before]
    assert fresh.json("status")["audit"]["entries"] > size
    assert fresh.ok("run", *VISION, "--", "echo", "again") == "again\n"
    assert fresh("audit", "verify").returncode == 0


def test_everything_at_once(fresh):
    lease = active_job(fresh)
    for pid in children_of(fresh.pid_of("ringfence-jailer")) + fresh.pid_of("ringfence") + fresh.pid_of("ringfence-jailer"):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_until(lambda: not fresh.pid_of("ringfence") and not fresh.pid_of("ringfence-jailer"), "all to be dead")
    fresh.up()
    check_after(fresh, lease)


def test_a_gpu_that_cannot_be_scrubbed_is_quarantined(fresh):
    import json

    scenario = fresh.state / "node" / "driver" / "scenario.json"
    lease = active_job(fresh)
    [gpu] = fresh.json("lease", "show", lease)["gpus"]
    text = json.loads(scenario.read_text())
    for one in text["gpus"]:
        if one["uuid"] == gpu:
            # Bits that never become one: whatever a scrub's pattern is, it has a one in one of the two places.
            one["bad_memory"] = [{"offset": at, "and": 254, "or": 0} for at in (4096, 4096 + 8)]
    good = scenario.read_text()
    scenario.write_text(json.dumps(text))
    fresh.ok("lease", "end", lease)
    wait_until(lambda: fresh.json("lease", "show", lease)["state"] == "quarantined", "the quarantine")
    states = {one["uuid"]: one["state"] for one in fresh.json("gpu", "list")}
    assert states[gpu] == "quarantined"
    assert fresh("status").returncode == 1
    for _ in range(9):
        fresh.gpus_are_back()
        fresh.ok("run", *VISION, "--", "true")
    used = {uuid for one in fresh.json("lease", "list", "--all") if one["id"] != lease for uuid in one.get("gpus", [])}
    assert gpu not in used
    scenario.write_text(good)
    fresh.ok("gpu", "scrub", gpu)
    wait_until(lambda: fresh.json("lease", "show", lease)["state"] == "closed", "the second scrub")
    assert {one["uuid"]: one["state"] for one in fresh.json("gpu", "list")}[gpu] == "free"


def test_several_side_by_side(fresh):
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o700)  # and one that only root can reach
    second = start(state)
    try:
        assert second.ok("run", *VISION, "--", "echo", "two") == "two\n"
        assert fresh.ok("run", *VISION, "--", "echo", "one") == "one\n"
        assert len(second.json("lease", "list", "--all")) == 1
    finally:
        second("down")
        shutil.rmtree(state, ignore_errors=True)
