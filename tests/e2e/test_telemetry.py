"""Goal: what a node's GPUs measure and suffer reaches people, records and rules: readings, faults that take a GPU out of
use with their evidence until an operator lets it back, alerts of the rules that look at GPUs, once, whoever dies.

Method: a Ringfence of its own; its simulated GPUs are made to fail by writing their scenario anew while all runs; kill -9
of server and agent.
"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from conftest import ROOT, Ringfence, children_of, wait_until

VISION = ("-t", "acme/research/vision")

# A process of the host on a card, behind everybody's back.
INTRUDER = """
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
def ok(code): assert code == 0, code
ok(cuda.cuInit(0))
device, context = ctypes.c_int(), ctypes.c_void_p()
ok(cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[2])))
ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
print("there", flush=True)
sys.stdin.read()
"""


class Place:
    """The instance, and the scenario of its GPUs."""

    def __init__(self, folder):
        self.ringfence = Ringfence(os.path.join(folder, "state"))
        self.driver = os.path.join(folder, "state", "node", "driver")
        self.scenario = os.path.join(self.driver, "scenario.json")
        self.rules = os.path.join(folder, "rules")
        os.mkdir(self.rules)
        # The rule that waits an hour, made to wait for five readings.
        text = (ROOT / "content" / "rules" / "gpu" / "gpu_mining_shape.yml").read_text(encoding="utf-8")
        for old, new in (("gte: 55", "gte: 5"), ("gpu_mining_shape", "gpu_mining_short"), ("20e17350", "20e17351"),
                         ("7cdae6ff", "7cdae6fe"), ("like a miner for an hour", "like a miner")):
            assert old in text
            text = text.replace(old, new)
        pathlib.Path(self.rules, "mining.yml").write_text(text, encoding="utf-8")
        self.settings = {"RINGFENCE_SERVER_RULES": self.rules, "RINGFENCE_SERVER_TELEMETRY_SECONDS": "1"}

    def cause(self, uuid, **members):
        self.cause_all({uuid: members})

    def cause_all(self, changes):
        """From now on these members of the GPUs; timelines count from now, and those of before are over."""
        with open(self.scenario, encoding="utf-8") as file:
            scenario = json.load(file)
        for gpu in scenario["gpus"]:
            gpu.update({"timeline": []}, **changes.get(gpu["uuid"], {}))
        with open(self.scenario + ".new", "w", encoding="utf-8") as file:
            json.dump(scenario, file)
        os.rename(self.scenario + ".new", self.scenario)

    def gpus(self, state):
        return [gpu["uuid"] for gpu in self.ringfence.json("gpu", "list") if gpu["state"] == state]

    def alerts(self):
        return {alert["title"]: alert for alert in self.ringfence.json("alert", "list", "--all")}

    def events(self, *words):
        return [json.loads(line) for line in
                self.ringfence.ok("event", "search", *words, "-n", "5000", "-o", "json").splitlines()]

    def job(self):
        """A lease that is active, and its GPU."""
        lease = self.ringfence.ok("run", *VISION, "--detach", "--", "sleep", "600").strip()
        held = wait_until(lambda: (found := self.ringfence.json("lease", "show", lease))["state"] == "active" and found,
                          "the job")
        return lease, held["gpus"][0]

    def show(self, uuid):
        return self.ringfence.json("gpu", "show", uuid)


@pytest.fixture(scope="module")
def place():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    folder = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(folder, 0o755)
    made = Place(folder)
    made.ringfence.ok("up", "--detach", "--listen", "127.0.0.1:0", env=made.settings)
    if any(node["missing"] for node in made.ringfence.json("node", "list")):
        made.ringfence.down()
        shutil.rmtree(folder)
        pytest.skip("this machine cannot run boxes")
    wait_until(lambda: len(made.gpus("free")) == 8, "all GPUs to be clean")
    yield made
    made.ringfence("down")
    shutil.rmtree(folder, ignore_errors=True)


def test_readings_of_a_gpu_are_shown_and_follow_it(place):
    uuid = place.gpus("free")[7]
    wait_until(lambda: "reading" in place.show(uuid), "a first reading")
    place.cause(uuid, power_mw=512000, temperature_c=71, ecc_errors_corrected=3, sm_active_percent=64)
    wait_until(lambda: place.show(uuid)["reading"]["power_mw"] == 512000, "the new reading")
    text = place.ringfence.ok("gpu", "show", uuid)
    assert "512 W of 700 W" in text and "71 °C" in text and "3 corrected" in text and "64 %" in text


def test_a_fatal_xid_ends_the_lease_and_quarantines_its_gpu_until_an_operator_lets_it_back(place):
    ringfence = place.ringfence
    lease, uuid = place.job()
    place.cause(uuid, timeline=[{"after_ms": 200, "xid": 79, "set": {"power_mw": 0}}])
    ended = wait_until(lambda: (found := ringfence.json("lease", "show", lease))["state"] == "closed" and found, "its end")
    assert "Xid 79" in ended["reason"] and uuid in ended["reason"]

    faulty = wait_until(lambda: (found := place.show(uuid))["state"] == "quarantined" and found, "quarantine")
    assert "Xid 79 (the GPU has fallen off the bus)" in faulty["fault"]
    entry = [e["entry"] for e in ringfence.json("audit", "list", "--action", "gpu.fault") if uuid in e["entry"]["gpus"]][0]
    assert entry["lease"] == lease and entry["detail"]["xid"] == 79 and entry["detail"]["evidence"]
    wait_until(lambda: len(place.gpus("free")) == 7, "the others")
    six = ringfence.ok("run", "-t", "acme", "--gpus", "6", "--detach", "--", "sleep", "600").strip()
    assert uuid not in ringfence.json("lease", "show", six)["gpus"]
    refused = ringfence("run", "-t", "globex", "--gpus", "2", "--", "true")
    assert refused.returncode != 0 and "quota" not in refused.stderr, refused.stderr
    ringfence.ok("lease", "end", six)

    ringfence.ok("gpu", "scrub", uuid)
    wait_until(lambda: place.show(uuid)["state"] == "free", "the GPU to be back")
    wait_until(lambda: len(place.gpus("free")) == 8, "all of them")
    assert "fault" not in place.show(uuid)


def test_an_xid_of_the_job_quarantines_nothing_and_a_lost_gpu_without_a_lease_is_quarantined(place):
    mmu, gone = place.gpus("free")[:2]
    place.cause(mmu, timeline=[{"after_ms": 100, "xid": 31}])
    [event] = wait_until(lambda: [e for e in place.events("--log", "driver", "--gpu", mmu) if e["gpu"].get("xid") == 31], "the XID")
    assert event["node"]["name"]
    place.cause(gone, lost=True)
    faulty = wait_until(lambda: (found := place.show(gone))["state"] == "quarantined" and found, "quarantine")
    assert "GPU is lost" in faulty["fault"]
    assert place.show(mmu)["state"] == "free"
    place.cause(gone, lost=False)


def test_rules_about_gpus_fire_on_what_gpus_do(place):
    lease, uuid = place.job()
    memory, security, other = place.gpus("free")[:3]
    xids = (31, 31, 31, 31, 31, 13, 43, 45)
    place.cause_all({
        uuid: {"power_mw": 630000, "sm_active_percent": 97, "power_limit_mw": 690000, "ecc_errors_corrected": 200,
               "timeline": [{"after_ms": 100 * at, "xid": xid} for at, xid in enumerate(xids, 1)]},
        memory: {"timeline": [{"after_ms": 100, "xid": 48}]},
        security: {"timeline": [{"after_ms": 100, "xid": 110}]}})
    number = [gpu["uuid"] for gpu in place.ringfence.json("gpu", "list")].index(other)
    with subprocess.Popen([sys.executable, "-c", INTRUDER, os.path.join(place.driver, "lib", "libcuda.so.1"), str(number)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as intruder:
        assert intruder.stdout.readline() == "there\n"
        wanted = {"Burst of MMU faults by one lease", "One tenant causes many kinds of XID", "Uncorrectable memory error",
                  "GPU reports a security violation", "GPU vanished from its node", "Process on a GPU without a lease",
                  "Correctable memory errors rise steeply", "GPU used like a miner",
                  "Power limit or clocks changed during a lease"}
        try:
            wait_until(lambda: wanted <= set(place.alerts()), "all alerts")
        except AssertionError as error:
            raise AssertionError(f"missing: {wanted - set(place.alerts())}") from error
        intruder.stdin.close()
    found = place.alerts()
    for title in ("Burst of MMU faults by one lease", "GPU used like a miner"):
        assert found[title]["lease"] == lease and found[title]["tenant"] == VISION[1], title
    assert not found["Process on a GPU without a lease"]["lease"]
    assert place.show(uuid)["state"] == "leased", "a job's own faults are no reason to end it"
    place.ringfence.ok("lease", "end", lease)


def test_nothing_is_lost_or_told_twice_when_server_or_agent_is_killed(place):
    ringfence = place.ringfence
    uuid = place.gpus("free")[0]
    place.cause(uuid, timeline=[{"after_ms": 100 * at, "xid": 32} for at in range(1, 30)])
    for pid in ringfence.pid_of("ringfence", "server"):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: ringfence("status").returncode in (0, 1), "the server to be back")

    def of_kind():
        return [e for e in place.events("--log", "driver", "--gpu", uuid) if e["gpu"].get("xid") == 32]

    wait_until(lambda: len(of_kind()) >= 29, "all XIDs")

    def agents():
        try:
            return {pid for pid in children_of(ringfence.pid_of("ringfence-jailer"))
                    if b"agent" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")}
        except OSError:
            return set()  # it ended while we looked

    killed = agents()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: agents() - killed, "the agent to be back")
    place.cause(uuid, power_mw=333000)
    wait_until(lambda: place.show(uuid).get("reading", {}).get("power_mw") == 333000, "readings to go on")
    uids = [event["metadata"]["uid"] for event in of_kind()]
    assert len(uids) == len(set(uids)) == 29
    sight = ringfence.json_any("status")["telemetry"]
    assert sight["missing"] == 0 and sight["dropped"] == 0
    wait_until(lambda: ringfence.json_any("status")["telemetry"]["blind"] == 0, "every GPU to be seen")
    assert "% of GPUs without readings" in ringfence("status").stdout


class Stream:
    """Delivers readings as the instance's node, from a spool of its own, and again until they are acknowledged."""

    def __init__(self, ringfence, uuid, batches, records):
        state = pathlib.Path(ringfence.state)
        context = json.loads((state / "cli" / "context.json").read_text(encoding="utf-8"))
        credentials = json.loads((state / "node" / "agent" / "credentials.json").read_text(encoding="utf-8"))
        pem = state.parent / "stream.pem"
        pem.touch(0o600)
        pem.write_text(credentials["certificate"] + credentials["key"], encoding="utf-8")
        self.tls = ssl.create_default_context(cadata=context["ca_pem"])
        self.tls.load_cert_chain(pem)
        self.server, self.uuid, self.batches, self.records = context["server"], uuid, batches, records
        self.acknowledged = self.again = 0
        self.thread = threading.Thread(target=self.deliver)

    def body(self, first):
        now = int(time.time() * 1000)
        records = [{"seq": first + i, "time": now, "kind": "reading", "gpu": self.uuid, "samples": 1,
                    "mean": {"busy_percent": 1}, "grown": {}, "peak": {}} for i in range(self.records)]
        return json.dumps({"epoch": "stream", "records": records, "waiting": 0, "read": now, "readings": [], "blind": ""})

    def post(self, body):
        connection = http.client.HTTPSConnection(self.server, context=self.tls, timeout=30)
        try:
            connection.request("POST", "/v1/agent/telemetry", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return json.loads(answer.read())["next"] if answer.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def deliver(self):
        for batch in range(self.batches):
            first = 1 + batch * self.records
            while (answer := self.post(self.body(first))) is None:
                self.again += 1
                time.sleep(0.02)
            assert answer == first + self.records
            self.acknowledged += self.records


def test_every_acknowledged_event_of_a_stream_is_there_once_whenever_the_server_dies(place):
    ringfence = place.ringfence
    node = ringfence.json("node", "list")[0]["name"]
    jailers = ringfence.pid_of("ringfence-jailer")
    agents = [pid for pid in children_of(jailers)
              if b"agent" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    stream = Stream(ringfence, ringfence.json("gpu", "list")[0]["uuid"], batches=100, records=30)
    for pid in agents:
        os.kill(pid, signal.SIGSTOP)  # it would deliver between ours, from its own spool
    try:
        stream.thread.start()
        for third in (1, 2):
            wait_until(lambda part=third: stream.acknowledged > part * 100 * 30 / 4, "a part of the stream")
            for pid in ringfence.pid_of("ringfence", "server"):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not stream.thread.is_alive(), "the end of the stream")
    finally:
        for pid in agents:
            os.kill(pid, signal.SIGCONT)
    assert stream.acknowledged == 100 * 30 and stream.again > 0, "no delivery met a server that was gone"
    prefix = f"{node}-stream-"
    numbers = [int(event["metadata"]["uid"].removeprefix(prefix)) for event in place.events("--log", "telemetry", "--node", node)
               if event["metadata"]["uid"].startswith(prefix)]
    assert sorted(numbers) == list(range(1, 100 * 30 + 1))
    sequences = [event["metadata"]["sequence"] for event in place.events("--log", "telemetry", "--node", node)]
    assert len(sequences) == len(set(sequences))
    wait_until(lambda: ringfence.json_any("status")["detection"]["behind"] == 0, "rules to have seen all")
