"""Goal: a disk that is full, does not sync or loses power in the middle of a write costs no
acknowledged entry, no scrub and no lease.

Method: the server's and the jailer's state on file systems that are filled to the last byte; the k-th
sync of a program fails, its k-th write is torn and it dies, for every k that a lease's life has.
"""

import errno
import os
import subprocess
import tempfile

import pytest

import world as worlds
from conftest import ALL, SEED, need_boxes
from fail import ERROR, FOREVER, KILL, TORN
from world import VISION, wait_until

CALLS_MAX = 200


@pytest.fixture
def small():
    """A Ringfence whose server and jailer write to file systems of 320 MB."""
    need_boxes()
    state = tempfile.mkdtemp(prefix="ringfence-faults-")
    mounts = [os.path.join(state, "server"), os.path.join(state, "node", "jailer")]
    for mount in mounts:
        os.makedirs(mount, mode=0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=320m,mode=0755", "ringfence-faults", mount], check=True)
    os.chmod(state, 0o755)
    os.chmod(os.path.join(state, "node"), 0o755)
    one = worlds.World(folder=state, seed=SEED)
    try:
        one.up()
        yield one
    finally:
        one.rf("down")
        for mount in mounts:
            subprocess.run(["umount", "--lazy", mount], check=False)
        one.close()


def fill(folder):
    path = os.path.join(folder, "filler")
    with open(path, "wb", buffering=0) as file:
        block = 1 << 20
        while block >= 1:
            try:
                file.write(b"x" * block)
            except OSError as error:
                assert error.errno == errno.ENOSPC
                block //= 2
    return path


def one_life(world):
    """A lease from request to receipt, if it can be had."""
    done = world.rf("run", *VISION, "--", "sh", "-c", "echo hello", timeout=180)
    if done.returncode == 0:
        assert done.stdout == "hello\n"
    return done


def test_the_servers_disk_is_full(small):
    thread, running = small.start_job()
    thread.join()
    wait_until(lambda: small.is_ready(running["lease"]), "the job")
    filler = fill(small.state / "server")
    refused = small.rf("run", *VISION, "--detach", "--", "true")
    assert refused.returncode != 0 and "full" in refused.stderr + refused.stdout, refused
    assert small.rf("status").returncode == 1
    assert small.lease(running["lease"])["state"] == "active"  # what runs goes on
    os.unlink(filler)
    small.settle()
    assert one_life(small).returncode == 0
    small.check()


@pytest.mark.whole
def test_the_jailers_disk_is_full(small):
    thread, running = small.start_job()
    thread.join()
    wait_until(lambda: small.is_ready(running["lease"]), "the job")
    filler = fill(small.state / "node" / "jailer")
    refused = one_life(small)
    assert refused.returncode == 125 and "space" in refused.stderr, refused
    os.unlink(filler)
    small.settle()
    quarantined = [gpu["uuid"] for gpu in small.rf.json("gpu", "list") if gpu["state"] == "quarantined"]
    assert not quarantined, quarantined
    assert one_life(small).returncode == 0
    small.check()


FAULTS = {
    "sync-fails": ("disk.sync", ERROR, errno.EIO),
    "no-room": ("disk.write", ERROR, errno.ENOSPC),
    "torn-write": ("disk.write", TORN, 0),
    "dies-before-rename": ("disk.rename", KILL, 0),
}


@pytest.mark.parametrize("victim,fault", [
    pytest.param(victim, fault, marks=() if (victim, fault) == ("jailer", "sync-fails") else pytest.mark.whole)
    for victim in ("server", "jailer", "agent") for fault in FAULTS])
def test_every_call_fails_once(world, victim, fault):
    """Call 0, 1, 2... of one lease's life, until a life in which none was left to fail."""
    place, action, argument = FAULTS[fault]
    step = 1 if ALL else 7
    for number in range(0, CALLS_MAX, step):
        world.refresh(kills_max=0)
        wait_until(lambda: len(getattr(world, victim)()) == 1, victim)
        world.fail.arm(place, action, argument, skip=number, only_pid=getattr(world, victim)()[0])
        one_life(world)
        failed = world.fail.get(place, "times") == 0
        world.fail.disarm()
        if failed and action in (KILL, TORN):
            world.kills += 1
        world.settle()
        for gpu in world.rf.json("gpu", "list"):
            assert gpu["state"] != "quarantined", (number, gpu)
        world.check()
        if not failed:
            break
    else:
        pytest.fail(f"a lease's life has more than {CALLS_MAX} such calls")
    world.passed = True


@pytest.mark.whole
def test_a_disk_that_never_syncs(world):
    """Nothing is acknowledged while it lasts; afterwards all is well by itself."""
    [server] = world.server()
    world.fail.arm("disk.sync", ERROR, errno.EIO, times=FOREVER, only_pid=server)
    before = {one["id"] for one in world.rf.json("lease", "list", "--all")}
    assert world.rf("run", *VISION, "--detach", "--", "true", timeout=120).returncode != 0
    assert {one["id"] for one in world.rf.json("lease", "list", "--all")} == before
    world.fail.disarm()
    world.settle()
    assert one_life(world).returncode == 0
    world.check()
    world.passed = True
