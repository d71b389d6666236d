"""Goal: what a node's GPUs measure and suffer reaches people and the records: readings, faults that take a GPU out of
use with their evidence until an operator lets it back.

Method: a Ringfence of its own; its simulated GPUs are made to fail by writing their scenario anew while all runs.
"""

import json
import os
import shutil
import tempfile

import pytest
from conftest import Ringfence, wait_until

VISION = ("-t", "acme/research/vision")


class Place:
    """The instance, and the scenario of its GPUs."""

    def __init__(self, folder):
        self.ringfence = Ringfence(os.path.join(folder, "state"))
        self.scenario = os.path.join(folder, "state", "node", "driver", "scenario.json")

    def cause(self, uuid, **members):
        """From now on these members of the GPU; `timeline` counts from now too."""
        with open(self.scenario, encoding="utf-8") as file:
            scenario = json.load(file)
        gpu = next(one for one in scenario["gpus"] if one["uuid"] == uuid)
        gpu.update(members)
        with open(self.scenario + ".new", "w", encoding="utf-8") as file:
            json.dump(scenario, file)
        os.rename(self.scenario + ".new", self.scenario)

    def gpus(self, state):
        return [gpu["uuid"] for gpu in self.ringfence.json("gpu", "list") if gpu["state"] == state]

    def show(self, uuid):
        return self.ringfence.json("gpu", "show", uuid)


@pytest.fixture(scope="module")
def place():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    folder = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(folder, 0o755)
    made = Place(folder)
    made.ringfence.ok("up", "--detach", "--listen", "127.0.0.1:0")
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
    lease = ringfence.ok("run", *VISION, "--detach", "--", "sleep", "600").strip()
    held = wait_until(lambda: (found := ringfence.json("lease", "show", lease))["state"] == "active" and found, "the job")
    uuid = held["gpus"][0]
    place.cause(uuid, timeline=[{"after_ms": 200, "xid": 79, "set": {"power_mw": 0}}])
    ended = wait_until(lambda: (found := ringfence.json("lease", "show", lease))["state"] == "closed" and found, "its end")
    assert "Xid 79" in ended["reason"] and uuid in ended["reason"]

    faulty = wait_until(lambda: (found := place.show(uuid))["state"] == "quarantined" and found, "quarantine")
    assert "Xid 79 (the GPU has fallen off the bus)" in faulty["fault"]
    entry = [e["entry"] for e in ringfence.json("audit", "list", "--action", "gpu.fault") if uuid in e["entry"]["gpus"]][0]
    assert entry["lease"] == lease and entry["detail"]["xid"] == 79 and entry["detail"]["evidence"]
    wait_until(lambda: len(place.gpus("free")) == 7, "the others")
    refused = ringfence("run", "-t", "acme", "--gpus", "8", "--", "true")
    assert refused.returncode != 0 and "quarantined" in refused.stderr

    ringfence.ok("gpu", "scrub", uuid)
    wait_until(lambda: place.show(uuid)["state"] == "free", "the GPU to be back")
    assert "fault" not in place.show(uuid)


def test_an_xid_of_the_job_quarantines_nothing_and_a_lost_gpu_without_a_lease_is_quarantined(place):
    mmu, gone = place.gpus("free")[:2]
    place.cause(mmu, timeline=[{"after_ms": 100, "xid": 31}])
    seen = wait_until(lambda: place.ringfence.ok("event", "search", "--log", "driver", "--gpu", mmu, "-o", "json"), "the XID")
    event = json.loads(seen.splitlines()[0])
    assert event["gpu"]["xid"] == 31 and event["node"]["name"]
    place.cause(gone, lost=True)
    faulty = wait_until(lambda: (found := place.show(gone))["state"] == "quarantined" and found, "quarantine")
    assert "GPU is lost" in faulty["fault"]
    assert place.show(mmu)["state"] == "free"
    place.cause(gone, lost=False)
