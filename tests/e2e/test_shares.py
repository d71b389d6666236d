"""Goal: leases share a GPU only where policy lets them, within their caps, and the GPU is scrubbed when the last one leaves.
Method: one node with one simulated GPU of 64 MiB whose driver scrubs freed memory; jobs that really allocate; kill -9."""

import json
import os
import pathlib
import shutil
import signal
import tempfile

import pytest

from conftest import Api, children_of, start, wait_until

GPU = "GPU-11111111-2222-4333-8444-555555555555"
VISION, SPEECH, OTHER = "acme/research/vision", "acme/research/speech", "globex/trading/pricing"
JOB = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def ok(code):
    assert code == 0, code
ok(cuda.cuInit(0))
device, context = ctypes.c_int(), ctypes.c_void_p()
ok(cuda.cuDeviceGet(ctypes.byref(device), 0))
ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
at, size = ctypes.c_uint64(), int(sys.argv[1]) << 20
ok(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)))
seen = ctypes.create_string_buffer(size)
ok(cuda.cuMemcpyDtoH_v2(seen, at, ctypes.c_size_t(size)))
print("residue", size - seen.raw.count(0), flush=True)
mark = b"M" * size
ok(cuda.cuMemcpyHtoD_v2(at, mark, ctypes.c_size_t(size)))
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def world():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-e2e-"))
    folder.chmod(0o755)
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({"scrub_on_free": True, "gpus": [{"uuid": GPU}]}))
    instance = start(folder / "state", ["--scenario", str(scenario)])
    yield instance
    instance("down")
    shutil.rmtree(folder, ignore_errors=True)


def hold(world, tenant, mib, use, seconds="300"):
    """A job with a share that allocates `use` MiB; comes back once it runs."""
    lease = world.ok("run", "-t", tenant, "--share", "time", "--gpu-memory", f"{mib}MiB", "--detach", "--",
                       "python3", "-c", JOB, use, seconds).strip()
    wait_until(lambda: show(world, lease)["state"] not in ("placed", "preparing"), "the job")
    return lease


def show(world, lease):
    return world.json("lease", "show", lease)


def over(world, *leases):
    for lease in leases:
        world.ok("lease", "end", lease)
    return [world.json("lease", "show", "--wait", lease) for lease in leases]


def card(world):
    return world.json("gpu", "list")[0]


def entries(world, action):
    return [item["entry"] for item in world.json("audit", "list", "--action", action)]


def free(world):
    return wait_until(lambda: card(world)["state"] == "free", "a free GPU")


def test_two_projects_share_and_the_last_one_leaves_it_clean(world):
    free(world)
    first = hold(world, VISION, 16, 8)
    second = hold(world, SPEECH, 24, 8)
    now = card(world)
    assert now["state"] == "shared" and now["shared_bytes"] == 40 << 20
    assert {share["tenant"] for share in now["shares"]} == {VISION, SPEECH}
    assert "shared by several leases" in world.ok("gpu", "map")
    text = world.ok("lease", "show", first)
    assert "watched through NVML, ended on breach" in text

    # Neither is there room for more than the card has, nor for who must be further away, nor for a whole lease.
    refused = world("run", "-t", VISION, "--share", "time", "--gpu-memory", "30MiB", "--", "true")
    assert refused.returncode != 0 and "22 MiB left for shares" in refused.stderr, refused.stderr
    refused = world("run", "-t", OTHER, "--share", "time", "--gpu-memory", "4MiB", "--", "true")
    assert refused.returncode != 0 and "boundaries.yaml:6" in refused.stderr, refused.stderr
    assert f"lease {first}" in refused.stderr and "earliest release by" in refused.stderr
    assert world("run", "-t", VISION, "--", "true").returncode != 0

    left, = over(world, first)
    assert left["state"] == "closed"
    assert left["steps"][-1]["reason"] == "not scrubbed: 1 neighbour still on the card"
    assert card(world)["state"] == "shared"
    # Another joins: it finds nothing of who has left, as the driver scrubbed it.
    third = hold(world, VISION, 16, 16, "0")
    assert "residue 0" in wait_until(lambda: world.ok("lease", "logs", third), "its output")
    world.json("lease", "show", "--wait", third)
    last, = over(world, second)
    assert last["state"] == "closed" and last["steps"][-1]["reason"] == ""
    free(world)
    by_lease = {entry["lease"]: entry["detail"] for entry in entries(world, "gpu.scrub") if entry.get("lease")}
    assert by_lease[first]["neighbours"] == 1 and by_lease[first]["reached_bytes"] == 0
    assert by_lease[second]["neighbours"] == 0 and by_lease[second]["reached_bytes"] > 0
    text = world.ok("lease", "show", second)
    assert "with 3 leases since it was last scrubbed" in text and "scrubbed 6" in text, text
    assert world.ok("run", "-t", OTHER, "--", "echo", "whole").strip() == "whole"
    free(world)


def test_a_job_above_its_share_is_ended(world):
    free(world)
    neighbour = hold(world, SPEECH, 16, 8)
    greedy = hold(world, VISION, 8, 20)
    ended = world.json("lease", "show", "--wait", greedy)
    assert "over its memory share" in ended["reason"] and "20 MiB" in ended["reason"], ended["reason"]
    assert [entry["lease"] for entry in entries(world, "lease.over_share")] == [greedy]
    assert show(world, neighbour)["state"] == "active"
    over(world, neighbour)
    free(world)


def test_bad_requests_say_what_is_wrong(world):
    for words, said in ((("--share", "time"), "--gpu-memory"),
                        (("--share", "mps", "--gpu-memory", "4MiB"), "none of time"),
                        (("--share", "time", "--gpu-memory", "4MiB", "--profile", "1g.18gb"), "MIG slice"),
                        (("--share", "time", "--gpu-memory", "4MiB", "--gpus", "2"), "one GPU"),
                        (("--share", "time", "--gpu-memory", "4GiB"), "62 MiB")):
        done = world("run", "-t", VISION, *words, "--", "true")
        assert done.returncode != 0 and said in done.stderr, (words, done.stderr)
    for share, said in (({"class": "mps", "memory_bytes": 4 << 20}, "not offered yet"),
                        ({"class": "gpu", "memory_bytes": 4 << 20}, "time or mps"),
                        ({"class": "time"}, "share.memory_bytes")):
        status, _, body = Api(world)("POST", "/v1/leases", {"tenant": VISION, "command": ["true"], "share": share},
                                     {"Idempotency-Key": os.urandom(16).hex()})
        assert status >= 400 and said in body.decode(), body


def is_agent(pid):
    return b"agent" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def test_killed_in_the_middle_it_is_scrubbed_before_anybody_has_it(world):
    free(world)
    for who in ("jailer", "agent"):
        leases = [hold(world, VISION, 16, 8), hold(world, SPEECH, 16, 8)]
        jailers = world.pid_of("ringfence-jailer")
        pids = jailers if who == "jailer" else [pid for pid in children_of(jailers) if is_agent(pid)]
        assert pids, who
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for lease in leases:
            gone = world.json("lease", "show", "--wait", lease, timeout=180)
            assert gone["state"] == "closed" and gone["outcome"] == "failed", gone
        free(world)
        scrubs = [entry["detail"]["neighbours"] for entry in entries(world, "gpu.scrub") if entry.get("lease") in leases]
        assert sorted(scrubs) == [0, 1]
    assert world.ok("run", "-t", OTHER, "--", "echo", "whole").strip() == "whole"


def test_usage_counts_the_part_of_the_memory(world):
    free(world)
    lease = hold(world, VISION, 16, 8)
    over(world, lease)
    used = next(row for row in world.json("usage", "--by", "lease")["items"] if row["key"] == lease)
    assert 0 < used["gpu_ms"] <= used["slice_ms"] // 4 + 1
