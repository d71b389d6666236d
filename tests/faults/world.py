"""One Ringfence under attack, and the one function that says whether it held."""

import collections
import importlib.util
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading

from fail import Failpoints


def end_to_end():
    """The end-to-end tests' own way to start a Ringfence: their conftest, which is not ours."""
    path = pathlib.Path(__file__).resolve().parents[1] / "e2e" / "conftest.py"
    spec = importlib.util.spec_from_file_location("ringfence_e2e", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


e2e = end_to_end()

wait_until = e2e.wait_until
VISION = ("-t", "acme/research/vision")
GPUS = 3
OVER = ("closed", "quarantined")

# Leaves a mark in its GPU's memory, says so, and ends well when it is asked to.
JOB = """
import ctypes, os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
cuda = ctypes.CDLL("libcuda.so.1")
def ok(code): assert code == 0, code
ok(cuda.cuInit(0))
device, context, at = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
ok(cuda.cuDeviceGet(ctypes.byref(device), 0))
ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
ok(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(1 << 20)))
mark = b"weights of acme" * 4096
ok(cuda.cuMemcpyHtoD_v2(at, mark, ctypes.c_size_t(len(mark))))
os.write(1, b"ready\\n")
while True: signal.pause()
"""


NETWORK_RULE = """---
apiVersion: ringfence.dev/v1
kind: NetworkRule
metadata: {name: vision-to-itself}
spec: {from: acme/research/vision, to: {tenant: acme/research/vision}, ports: [tcp/29500]}
"""


def failpoint_names():
    done = subprocess.run([e2e.PROGRAM, "__failpoints"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{e2e.PROGRAM} has no failpoints: build it with the preset test\n{done.stderr}"
    return done.stdout.split()


def processes():
    """(pid, command line, cgroups) of everything that runs."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if words != [""]:  # neither a kernel thread nor a zombie
                    found.append((int(entry.name), words, (entry / "cgroup").read_text()))
            except OSError:
                pass
    return found


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pids):
    """How many were there to be killed."""
    count = 0
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            count += 1
        except ProcessLookupError:
            pass
    return count


class World:
    """A Ringfence with failpoints, what the test knows of it, and what it must look like."""

    def __init__(self, folder=None, seed=0, up_args=()):
        self.state = pathlib.Path(folder or tempfile.mkdtemp(prefix="ringfence-faults-"))
        os.chmod(self.state, 0o755)
        self.random = random.Random(seed)
        self.node = f"faults-{os.getpid()}-{self.random.randrange(1 << 20):x}"
        self.fail = Failpoints(tempfile.mkstemp(prefix="ringfence-fail-")[1], failpoint_names())
        scenario = self.state / "scenario.json"  # small cards: scrubbed in a moment
        scenario.write_text(e2e.json.dumps({"gpus": [{"memory_mib": 32}] * GPUS}))
        self.rf = e2e.Ringfence(self.state, ["--node-name", self.node, "--scenario", str(scenario), *up_args])
        self.kills = 0  # since `up`: it waits longer each time before it starts a daemon again
        self.reports = 0  # of agents that are dead: a node is back when there are more
        self.requested = set()  # leases whose request was acknowledged
        self.ended = set()  # leases whose end was acknowledged
        self.entries = []  # of the audit log, as last read
        self.before = self.namespaces()

    # Starting and stopping.

    def write_policy(self):
        """The sample, and a rule by which the jobs here have a network."""
        folder = self.state / "policy"
        if not folder.exists():
            shutil.copytree(e2e.ROOT / "content" / "sample-policy", folder)
            with open(folder / "network.yaml", "a", encoding="utf-8") as rules:
                rules.write(NETWORK_RULE)

    def up(self):
        self.write_policy()
        done = self.rf("up", "--detach", "--listen", "127.0.0.1:0", *self.rf.up_args,
                       env={"RINGFENCE_FAIL_FILE": str(self.fail.path)})
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.rf.logs()}"
        self.kills = 0

    def down(self):
        self.rf.ok("down")
        assert not self.mine(), self.mine()

    def refresh(self, kills_max=1):
        """Before the next fault: a supervisor that does not make it wait."""
        if self.kills > kills_max:
            self.down()
            self.up()

    def close(self):
        self.fail.disarm()
        self.fail.move_clock(0)
        self.rf("down")
        kill(self.mine())
        if os.environ.get("RINGFENCE_KEEP"):
            print("state kept in", self.state)
        else:
            shutil.rmtree(self.state, ignore_errors=True)
        self.fail.path.unlink()

    # Who is who.

    def mine(self):
        """Every process of this Ringfence, its boxes' included."""
        return [pid for pid, words, groups in processes()
                if f"/ringfence/{self.node}/" in groups or self.node in words or self.owns(pid)]

    def owns(self, pid):
        try:
            return f"RINGFENCE_STATE={self.state}\0".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
        except OSError:
            return False

    def server(self):
        return self.rf.pid_of("ringfence", "server")

    def jailer(self):
        return [pid for pid, words, _ in processes()
                if os.path.basename(words[0]) == "ringfence-jailer" and self.node in words]

    def children(self, word):
        found = []
        for pid in e2e.children_of(self.jailer()):
            try:
                if word in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0"):
                    found.append(pid)
            except OSError:
                pass
        return found

    def agent(self):
        return self.children("agent")

    def sensor(self):
        """The one worker that stays: it watches the GPUs."""
        return self.children("sense")

    def worker(self):
        return [pid for pid in self.children("ringfence-worker") if pid not in self.sensor()]

    def box(self):
        return [pid for pid, _, groups in processes() if f"/ringfence/{self.node}/lease-" in groups]

    def strike(self, victim):
        """kill -9; whether there was anybody."""
        if victim == "all":
            struck = kill(self.rf.pid_of("ringfence", "up") + self.mine())
            wait_until(lambda: not self.mine(), "everything to be dead")
            self.fail.disarm()
            self.reports = self.fail.hits("agent.reported")
            self.up()
            return struck > 0
        pids = getattr(self, victim)()
        struck = kill(pids)
        wait_until(lambda: not any(is_alive(pid) for pid in pids), f"the {victim} to be dead")
        if struck and victim in ("server", "agent", "jailer"):
            self.kills += 1
        if struck and victim in ("agent", "jailer"):
            self.reports = self.fail.hits("agent.reported")
        return struck > 0

    # Leases.

    def start_job(self):
        """`run --detach` in a thread of its own: whom it talks to may be stopped or dead."""
        result = {}

        def ask():
            done = self.rf("run", *VISION, "--detach", "--", "python3", "-c", JOB, timeout=180)
            if done.returncode == 0:
                result["lease"] = done.stdout.strip()
                self.requested.add(result["lease"])
            else:
                result["refused"] = done.stderr

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        return thread, result

    def end_job(self, lease):
        def ask():
            if self.rf("lease", "end", lease, timeout=120).returncode == 0:
                self.ended.add(lease)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        return thread

    def lease(self, lease):
        done = self.rf("lease", "show", lease, "--output", "json")
        return e2e.json.loads(done.stdout) if done.returncode == 0 else {"state": "unknown"}

    def is_ready(self, lease):
        return self.lease(lease)["state"] == "active" and "ready" in self.rf("lease", "logs", lease).stdout

    def wait_healthy(self, seconds=90):
        """Everybody is back, and nobody complains."""
        wait_until(lambda: len(self.server()) == 1 and len(self.jailer()) == 1, "server and node to run", seconds)
        wait_until(lambda: self.fail.hits("agent.reported") > self.reports, "the node to report", seconds)
        try:
            wait_until(lambda: self.rf("status").returncode == 0, "health", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.rf('status').stdout}\n{self.rf.logs()}") from error

    def settle(self, seconds=90):
        """Waits until the system is well, then ends what still runs. The leases that did."""
        self.wait_healthy(seconds)
        running = []

        def open_leases():
            return [one for one in self.rf.json("lease", "list") if one["state"] not in OVER]

        def steady():
            return all(one["state"] == "active" and self.is_ready(one["id"]) for one in open_leases())

        try:
            wait_until(steady, "leases to run or end", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}: {open_leases()}\n{self.rf.logs()}") from error
        for one in open_leases():
            assert self.box(), f"{one['id']} is active, and nothing of it runs"
            running.append(one["id"])
            self.end_job(one["id"]).join()
        try:
            wait_until(lambda: not open_leases(), "leases to close", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}: {open_leases()}\n{self.rf.logs()}") from error
        return running

    # What must hold, whatever happened.

    def check(self):
        """Every promise. Call it once nothing is meant to be running."""
        try:
            self.wait_healthy()
            wait_until(lambda: self.rf.json("status")["gpus"]["free"] == GPUS, "all GPUs to be free")
            self.check_log()
            self.check_leftovers()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.rf('status').stdout}\n{self.rf.logs()}") from error

    def check_log(self, still_open=0):
        def proven():
            audit = self.rf.json("status")["audit"]
            return audit["entries"] == audit["proven"]

        wait_until(proven, "every acknowledged entry to be proven")
        verified = self.rf("audit", "verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        now = [item["entry"] for item in self.rf.json("audit", "list", "--limit", "100000")]
        ids = [entry["id"] for entry in now]
        assert len(set(ids)) == len(ids), "an entry is in the log twice"
        assert ids[:len(self.entries)] == self.entries, "entries seen before have changed or gone"
        self.entries = ids
        of_lease = collections.defaultdict(list)
        clean = {}
        for entry in now:
            action = entry["action"]
            if entry.get("lease"):
                of_lease[entry["lease"]].append(action)
            for gpu in entry.get("gpus", []):
                if action == "lease.place":
                    assert clean.get(gpu), f"{gpu} was given to {entry['lease']} without a scrub since its last use"
                elif action == "lease.grant":
                    clean[gpu] = False
                elif action == "gpu.scrub" and entry["result"] == "ok":
                    assert entry["detail"]["receipt"]
                    clean[gpu] = True
        opened = [lease for lease in of_lease if "lease.close" not in of_lease[lease]]
        assert len(opened) == still_open, {lease: of_lease[lease] for lease in opened}
        for lease in (self.requested | set(of_lease)) - set(opened):
            self.check_life(lease, of_lease[lease])
        assert all("lease.end" in of_lease[lease] or "lease.job_end" in of_lease[lease] for lease in self.ended)

    def check_life(self, lease, actions):
        """Each step once, in order, and over."""
        order = ["lease.request", "lease.admit", "lease.place", "lease.grant", "lease.start", "lease.end",
                 "lease.job_end", "lease.scrub", "gpu.scrub", "lease.close"]
        assert all(actions.count(action) <= 1 for action in order), f"{lease}: {actions}"
        places = [order.index(action) for action in actions if action in order and action != "lease.end"]
        assert places == sorted(places), f"{lease}: {actions}"
        assert actions[:3] == order[:3], f"{lease} was acknowledged, and the log has only {actions}"
        assert actions[-1] == "lease.close", f"{lease}: {actions}"
        assert "lease.grant" not in actions or "gpu.scrub" in actions, f"{lease}: {actions}"

    def namespaces(self):
        found = set()
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    found.add(os.readlink(entry / "ns" / "net"))
                except OSError:
                    pass
        return found

    def cgroups(self, beneath):
        root = pathlib.Path("/sys/fs/cgroup")
        return [*root.glob(f"ringfence/{self.node}{beneath}"), *root.glob(f"*/ringfence/{self.node}{beneath}")]

    def wires(self, jailer):
        """The router's wires to boxes. Its namespace has no process: only the jailer's descriptor."""
        for fd in pathlib.Path(f"/proc/{jailer}/fd").iterdir():
            if os.readlink(fd).startswith("net:["):
                done = subprocess.run(["nsenter", f"--net={fd}", "cat", "/proc/self/net/dev"], capture_output=True,
                                      text=True, check=True)
                return [line.split(":")[0].strip() for line in done.stdout.splitlines() if "box" in line]
        return []

    def check_leftovers(self):
        """Nothing of a box or a worker: process, cgroup, mount, node, network, memory."""
        wait_until(lambda: not self.worker(), "workers to end")
        assert not self.box(), self.box()
        groups = self.cgroups("/*/")
        assert not groups, groups
        [jailer] = self.jailer()
        inside = pathlib.Path(f"/proc/{jailer}/root/run/ringfence")
        for folder in ("bundles", "nodes", "runtime"):
            left = sorted((inside / folder).iterdir())
            assert not left, left
        assert "lease-" not in pathlib.Path(f"/proc/{jailer}/mountinfo").read_text()
        outside = pathlib.Path("/proc/self/mountinfo").read_text()
        assert self.node not in outside and "/ringfence/driver" not in outside
        networks = {os.readlink(f"/proc/{pid}/ns/net") for pid in self.mine()}
        assert len(networks) == 1, networks
        assert not self.wires(jailer), self.wires(jailer)
        for memory in (self.state / "node" / "driver" / "memory").iterdir():
            facts = memory.stat()
            assert facts.st_uid == 0, f"{memory} is still {facts.st_uid}'s"
            assert memory.read_bytes() == bytes(facts.st_size), f"{memory} still holds something"

    def check_gone(self):
        """After `down`: nothing at all."""
        assert not self.mine(), self.mine()
        groups = self.cgroups("*/")
        assert not groups, groups
        for pid, _, _ in processes():
            try:
                mounts = pathlib.Path(f"/proc/{pid}/mountinfo").read_text()
            except OSError:
                continue
            assert f"{self.state}/" not in mounts, f"process {pid} still has mounts of it"
