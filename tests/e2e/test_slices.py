"""Goal: two tenants on two slices of one GPU: each box has exactly its own slice's devices and memory, a slice is scrubbed while its
neighbour runs on, whoever is killed, and a boundary that wants more than MIG keeps a tenant off the GPU, with file and line.
Method: a node whose first simulated H200 begins cut; jobs that try what they must not reach."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from conftest import children_of, start, wait_until

CUT = "GPU-00000000-0000-4000-8000-000000000001"
SCENARIO = {"gpus": [{"memory_mib": 65, "mig": True, "mig_slices": "1g.18gb@0, 1g.18gb@1, 3g.71gb@4"}, {"memory_mib": 32}]}
VISION, GENOMICS = "acme/research/vision", "globex/genomics/folding"
BOUNDARY = "apiVersion: ringfence.dev/v1\nkind: Boundary\nmetadata: {name: extra}\nspec: %s\n"

# Allocates all of the slice, says what it sees, plants a secret, and goes on until it is ended.
JOB = r"""
import ctypes, errno, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def ok(code):
    assert code == 0, code
ok(cuda.cuInit(0))
count = ctypes.c_int()
ok(cuda.cuDeviceGetCount(ctypes.byref(count)))
device, context, total = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t()
ok(cuda.cuDeviceGet(ctypes.byref(device), 0))
ok(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device))
ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
size = 6 << 20
at, seen = ctypes.c_uint64(), ctypes.create_string_buffer(size)
ok(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)))
ok(cuda.cuMemcpyDtoH_v2(seen, at, ctypes.c_size_t(size)))
secret = b"secret-of-" + os.environ["RINGFENCE_TENANT"].encode()
print("count", count.value, "total", total.value >> 20, "found", b"secret-of" in seen.raw, "visible", os.environ.get("CUDA_VISIBLE_DEVICES"))
print("nodes", " ".join(sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))),
      "caps", " ".join(sorted(os.listdir("/dev/nvidia-caps"))))
ok(cuda.cuMemcpyHtoD_v2(at, secret * 4, ctypes.c_size_t(len(secret) * 4)))
# What belongs to others: their capability nodes, made anew, and their memory in the simulated driver's own folder.
refused = []
for minor in range(1, 140):
    path = "/dev/nvidia-caps/nvidia-cap%d" % minor
    if not os.path.exists(path):
        try:
            os.mknod("/tmp/cap", 0o20666, os.makedev(241, minor)); refused.append("MADE")
        except OSError as error:
            refused.append(errno.errorcode[error.errno])
print("mknod", sorted(set(refused)))
found = [os.path.join(folder, name) for folder, _, names in os.walk("/run/ringfence/driver") for name in names if name == "memory"]
print("memories", len(found))
sys.stdout.flush()
if len(sys.argv) > 1:
    ok(cuda.cuMemcpyDtoH_v2(seen, at, ctypes.c_size_t(size)))
    while True:
        time.sleep(0.1)
        ok(cuda.cuMemcpyDtoH_v2(seen, at, ctypes.c_size_t(size)))
        assert secret in seen.raw
"""


# From within the box's cgroup and outside all its other walls: what its device rules alone say.
IN_CGROUP = r"""
import errno, os, sys
for cgroup in sys.argv[1].split(":"):
    with open(cgroup + "/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
for path in sys.argv[2:]:
    try:
        os.close(os.open(path, os.O_RDONLY)); print("opened")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


def by_device_rules(lease, minors, folder):
    """What an open of these capabilities comes to in the lease's cgroup: ENXIO is a driver that is not there."""
    paths = []
    for minor in minors:
        path = os.path.join(folder, f"cap{minor}")
        if not os.path.exists(path):
            os.mknod(path, 0o20666, os.makedev(241, minor))
        paths.append(path)
    cgroups = [str(one.parent) for one in pathlib.Path("/sys/fs/cgroup").rglob("cgroup.procs") if lease in str(one) and one.read_text().strip()]
    assert cgroups
    done = subprocess.run([sys.executable, "-c", IN_CGROUP, ":".join(cgroups), *paths], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def ringfence():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o755)
    scenario = os.path.join(state, "scenario.json")
    with open(scenario, "w") as file:
        json.dump(SCENARIO, file)
    instance = start(os.path.join(state, "own"), ["--scenario", scenario])
    missing = [node["missing"] for node in instance.json("node", "list")]
    if any(missing):
        instance.down()
        shutil.rmtree(state)
        pytest.skip(f"this machine cannot run boxes: {missing}")
    yield instance
    instance("down")
    shutil.rmtree(state, ignore_errors=True)


def slices(ringfence):
    return {gpu["uuid"]: gpu for gpu in ringfence.json("gpu", "list") if gpu.get("parent") == CUT}


def all_free(ringfence):
    wait_until(lambda: all(one["state"] == "free" for one in slices(ringfence).values()), "free slices", 120)


class Job:
    """A job in the background, until it is ended."""

    def __init__(self, ringfence, tenant, token, *words):
        self.ringfence = ringfence
        done = ringfence("run", "-t", tenant, *words, "--detach", "--", "python3", "-c", JOB, "stay", token=token)
        assert done.returncode == 0, done.stderr
        self.id = done.stdout.strip()
        wait_until(lambda: "memories" in self.out(), "the job's words")

    def out(self):
        return self.ringfence("lease", "logs", self.id).stdout

    def lease(self):
        return self.ringfence.json("lease", "show", self.id)

    def end(self):
        self.ringfence.ok("lease", "end", self.id)
        return wait_until(lambda: (lease := self.lease())["state"] in ("closed", "quarantined") and lease, "its end", 120)


def test_two_tenants_on_one_gpu(ringfence, developer):
    all_free(ringfence)
    cut = next(gpu for gpu in ringfence.json("gpu", "list") if gpu["uuid"] == CUT)
    assert cut["state"] == "cut" and sorted(one["profile"] for one in slices(ringfence).values()) == ["1g.18gb", "1g.18gb", "3g.71gb"]
    # Whole GPUs are those that are not cut.
    refused = ringfence("run", "-t", VISION, "--gpus", "2", "--", "true", token=developer)
    assert refused.returncode != 0 and "the largest node has 1" in refused.stderr
    grace = ringfence.token("grace@globex.example")
    first = Job(ringfence, VISION, developer, "--profile", "1g.18gb")
    second = Job(ringfence, GENOMICS, grace, "--gpu-memory", "8M")
    leases = [first.lease(), second.lease()]
    assert all(lease["slice"]["parent"] == CUT and lease["slice"]["profile"] == "1g.18gb" for lease in leases)
    assert leases[0]["slice"]["gpu_millis"] == 123  # 8 of 65 MiB
    assert leases[0]["gpus"] != leases[1]["gpus"]
    caps = []
    for job, lease in zip((first, second), leases):
        words = job.out().splitlines()
        assert words[0] == f"count 1 total 8 found False visible {lease['gpus'][0]}", words
        assert words[1].startswith("nodes nvidia-caps nvidia-uvm nvidia0 nvidiactl caps nvidia-cap"), words
        caps.append(set(words[1].split(" caps ")[1].split()))
        assert len(caps[-1]) == 2
        assert words[2] == "mknod ['EPERM']" and words[3] == "memories 1", words
    assert not caps[0] & caps[1]
    own, others = ([int(name.removeprefix("nvidia-cap")) for name in sorted(names)] for names in caps)
    assert by_device_rules(first.id, [*own, *others, 1, 2], ringfence.state) == ["ENXIO"] * 2 + ["EPERM"] * 4
    assert by_device_rules(second.id, [*own, *others], ringfence.state) == ["EPERM"] * 2 + ["ENXIO"] * 2
    picture = ringfence.ok("gpu", "map")
    assert "[||||] (AA) (BB) (..)" in picture, picture
    # How busy a GPU is that others share is nobody's to read who may not see them.
    wait_until(lambda: "reading" in ringfence.json("gpu", "show", CUT), "a reading")
    assert "reading" not in ringfence.json("gpu", "show", CUT, token=developer)

    # A third slice of this size is not there; what is said is precise.
    refused = ringfence("run", "-t", VISION, "--profile", "1g.18gb", "--", "true", token=developer)
    assert refused.returncode != 0 and "2 slices are leased; earliest release by" in refused.stderr, refused.stderr
    assert ringfence("run", "-t", VISION, "--profile", "9g.1gb", "--", "true", token=developer).returncode != 0

    # One ends and is scrubbed; the other notices nothing.
    over = first.end()
    assert over["state"] == "closed"
    shown = ringfence.ok("lease", "show", first.id)
    assert f"(1g.18gb of {CUT}): scrubbed" in shown and "residue" in shown, shown
    assert second.lease()["state"] == "active"
    # The next one finds nothing of it.
    again = Job(ringfence, GENOMICS, grace, "--profile", "1g.18gb")
    assert again.lease()["gpus"] == leases[0]["gpus"] and "found False" in again.out()
    assert again.end()["state"] == "closed" and second.lease()["state"] == "active"
    assert second.end()["state"] == "closed"
    by_tenant = {row["key"]: row for row in ringfence.json("usage")["items"]}
    used = by_tenant[VISION]
    assert used["gpu_ms"] == used["slice_ms"] * 123 // 1000 and used["memory_unknown_ms"] == 0
    ringfence.ok("audit", "verify")


def test_a_boundary_keeps_a_tenant_off_the_gpu(ringfence, developer):
    all_free(ringfence)
    grace = ringfence.token("grace@globex.example")
    file = ringfence.state / "policy" / "extra.yaml"
    there = Job(ringfence, GENOMICS, grace, "--profile", "1g.18gb")
    try:
        file.write_text(BOUNDARY % "{between: [acme, globex/genomics], least: gpu}")
        ringfence.ok("policy", "reload")
        refused = ringfence("run", "-t", VISION, "--profile", "1g.18gb", "--", "true", token=developer)
        assert refused.returncode != 0
        assert f"1 slice is free but has a neighbour on its GPU: {GENOMICS} has a slice of {CUT}" in refused.stderr, refused.stderr
        assert "boundary between acme and globex/genomics (extra.yaml:1) wants gpu" in refused.stderr
        # Memory may be had elsewhere: of a whole GPU.
        got = json.loads(ringfence.ok("run", "-o", "json", "-t", VISION, "--gpu-memory", "8M", "--", "true", token=developer))
        assert got["gpus"] == ["GPU-00000000-0000-4000-8000-000000000002"] and "slice" not in got
    finally:
        file.unlink(missing_ok=True)
        ringfence.ok("policy", "reload")
        there.end()


def test_kill_of_the_agent_under_two_slices(ringfence, developer):
    all_free(ringfence)
    grace = ringfence.token("grace@globex.example")
    jobs = [Job(ringfence, VISION, developer, "--profile", "1g.18gb"), Job(ringfence, GENOMICS, grace, "--profile", "3g.71gb")]
    agents = [pid for pid in children_of(ringfence.pid_of("ringfence-jailer"))
              if b"agent" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    assert agents
    for pid in agents:
        os.kill(pid, signal.SIGKILL)
    for job in jobs:
        lease = wait_until(lambda: (one := job.lease())["state"] in ("closed", "quarantined") and one, "the lease's end", 180)
        assert lease["state"] == "closed" and len(lease["receipts"]) == 1, lease
    all_free(ringfence)
    assert "found False" in Job(ringfence, GENOMICS, grace, "--profile", "1g.18gb").out()
    for lease in ringfence.json("lease", "list", "--lease-state", "open"):
        ringfence.ok("lease", "end", lease["id"])


def test_capabilities_of_slices_are_attacked(ringfence):
    """The probe's control opens what its box must not have; with all walls it does not."""
    all_free(ringfence)
    done = ringfence("prove", "--probe", "mig-capability", "-o", "json")
    assert done.returncode == 0, done.stderr + done.stdout
    gpu = json.loads(done.stdout)["classes"]["gpu"]
    assert (gpu["held"], gpu["leaked"], gpu["untried"]) == (1, 0, 0), done.stdout


def test_bad_requests(ringfence, developer):
    for words, said in (
        (["--profile", "1g.18gb", "--gpus", "2"], "a lease has one slice"),
        (["--profile", "1g.18gb", "--gpu-memory", "8M"], "not both"),
        (["--profile", "../x"], "not the name of a MIG profile"),
        (["--gpu-memory", "900G"], "no slice and no whole GPU has"),
        (["--gpu-memory", "much"], "--gpu-memory"),
    ):
        refused = ringfence("run", "-t", VISION, *words, "--", "true", token=developer)
        assert refused.returncode == 2 and said in refused.stderr, (words, refused.stderr)
