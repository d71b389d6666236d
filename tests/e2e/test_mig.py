"""Goal: `ringfence mig apply|show` on a running fleet: a GPU becomes what was ordered, or stays what it was with the reason;
nothing that somebody uses goes; whoever is killed meanwhile, the order comes to its end.

Method: a Ringfence of its own with simulated H200s, which enforce the board's rules; failpoints kill jailer and worker in the
middle, kill -9 the server and the agent; a scenario makes NVML fail half-way.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from conftest import PROGRAM, ROOT, Ringfence, children_of, wait_until

sys.path.append(str(ROOT / "tests" / "faults"))
from fail import KILL, STOP, Failpoints  # noqa: E402

SLICES = "1g.18gb x3, 4g.71gb"


class Fleet:
    def __init__(self, folder):
        self.rf = Ringfence(os.path.join(folder, "state"))
        self.scenario = os.path.join(folder, "state", "node", "driver", "scenario.json")
        names = subprocess.run([PROGRAM, "__failpoints"], capture_output=True, text=True, check=True).stdout.split()
        self.fail = Failpoints(os.path.join(folder, "failpoints"), names)

    def cause(self, uuid, **members):
        with open(self.scenario, encoding="utf-8") as file:
            scenario = json.load(file)
        for gpu in scenario["gpus"]:
            if gpu["uuid"] == uuid:
                gpu.update(members)
        with open(self.scenario + ".new", "w", encoding="utf-8") as file:
            json.dump(scenario, file)
        os.rename(self.scenario + ".new", self.scenario)

    def show(self, uuid):
        return self.rf.json("mig", "show", uuid)[0]

    def free(self):
        return [gpu["uuid"] for gpu in self.rf.json("mig", "show") if gpu["state"] == "free"]

    def layout(self, uuid):
        return [(slice["profile"], slice["start"]) for slice in self.show(uuid)["slices"]]

    def order(self, uuid):
        return self.show(uuid)["order"]

    def ended(self, uuid):
        def over():
            done = self.rf("mig", "show", uuid, "-o", "json")
            view = json.loads(done.stdout)[0] if done.returncode == 0 else {}
            return view.get("order", {}).get("state") in ("applied", "failed") and view

        return wait_until(over, "the order to end", 120)

    def clean(self, uuid):
        wait_until(lambda: {one["state"] for one in self.show(uuid)["slices"]} == {"free"}, "clean slices", 120)


@pytest.fixture(scope="module")
def fleet():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    folder = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(folder, 0o755)
    made = Fleet(folder)
    made.rf.ok("up", "--detach", "--listen", "127.0.0.1:0", env={"RINGFENCE_FAIL_FILE": str(made.fail.path)})
    if any(node["missing"] for node in made.rf.json("node", "list")):
        made.rf.down()
        shutil.rmtree(folder)
        pytest.skip("this machine cannot run boxes")
    wait_until(lambda: len(made.free()) == 8, "all GPUs to be clean")
    yield made
    made.fail.disarm()
    made.rf("down")
    shutil.rmtree(folder, ignore_errors=True)


def test_a_gpu_is_cut_and_again_changes_nothing(fleet):
    uuid = fleet.rf.json("mig", "show", "0")[0]["uuid"]
    before = fleet.show(uuid)
    assert (before["board"], before["mode"], before["slices"]) == ("H200-141", "off", [])
    dry = fleet.rf.ok("mig", "apply", "0", "--layout", SLICES, "--dry-run")
    assert "order" not in fleet.show(uuid), dry
    fleet.rf.ok("mig", "apply", "0", "--layout", SLICES, "--wait")
    view = fleet.show(uuid)
    assert (view["mode"], view["state"], view["order"]["state"]) == ("on", "cut", "applied")
    assert fleet.layout(uuid) == [("4g.71gb", 0), ("1g.18gb", 4), ("1g.18gb", 5), ("1g.18gb", 6)]
    fleet.clean(uuid)
    order = fleet.order(uuid)["id"]
    again = fleet.rf.json("mig", "apply", uuid, "--layout", SLICES, "--wait")[0]
    assert again["plan"] == {"target": view["order"]["target"], "removed": [], "changes": False}
    assert fleet.order(uuid)["id"] == order
    told = [one["entry"] for one in fleet.rf.json("audit", "list", "-n", "1000") if one["entry"]["action"].startswith("mig.")]
    assert {entry["action"] for entry in told} == {"mig.reshape", "mig.applied"}
    reshape = next(entry for entry in told if entry["action"] == "mig.reshape")
    assert reshape["decision"] == "allow" and reshape["detail"]["aim"] == "on " + SLICES


def test_reshaping_keeps_what_stays_and_off_makes_it_whole(fleet):
    uuid = fleet.rf.json("mig", "show", "0")[0]["uuid"]
    fleet.clean(uuid)
    kept = fleet.show(uuid)["slices"][0]["uuid"]
    fleet.rf.ok("mig", "apply", uuid, "--layout", "4g.71gb, 3g.71gb", "--wait")
    fleet.clean(uuid)
    view = fleet.show(uuid)
    assert fleet.layout(uuid) == [("4g.71gb", 0), ("3g.71gb", 4)] and view["slices"][0]["uuid"] == kept
    fleet.rf.ok("mig", "apply", uuid, "--off", "--wait")
    assert fleet.show(uuid)["mode"] == "off" and fleet.layout(uuid) == []
    wait_until(lambda: fleet.show(uuid)["state"] == "free", "the whole GPU to be scrubbed")


@pytest.mark.parametrize("words, why", [
    (("--layout", "4g.71gb x2"), "2 of 4g.71gb, and there can be 1"),
    (("--layout", "9g.999gb"), "9g.999gb"),
    (("--layout", "1g.18gb x"), "column"),
    ((), "one of --strategy"),
])
def test_what_cannot_be_is_refused_before_anything_is_ordered(fleet, words, why):
    uuid = fleet.free()[-1]
    done = fleet.rf("mig", "apply", uuid, *words)
    assert done.returncode != 0 and why in done.stderr, done.stderr
    assert "order" not in fleet.show(uuid) and fleet.show(uuid)["mode"] == "off"


def test_nobody_without_the_right_orders(fleet):
    done = fleet.rf("mig", "apply", "7", "--strategy", "inference", token=fleet.rf.token("alice@acme.example"))
    assert done.returncode != 0 and "mig.reshape" in done.stderr, done.stderr


def test_a_gpu_in_use_keeps_its_mode_and_one_under_an_order_is_not_leased(fleet):
    lease = fleet.rf.ok("run", "-t", "acme/research/vision", "--detach", "--", "sleep", "600").strip()
    held = wait_until(lambda: (found := fleet.rf.json("lease", "show", lease))["state"] == "active" and found, "the job")
    done = fleet.rf("mig", "apply", held["gpus"][0], "--strategy", "development")
    assert done.returncode != 0 and "MIG mode changes only on a drained GPU" in done.stderr and lease in done.stderr
    fleet.rf.ok("lease", "end", lease)
    wait_until(lambda: len(fleet.free()) == 8, "all GPUs to be clean")
    uuid = fleet.free()[0]
    fleet.fail.arm("mig.wished", STOP)
    try:
        fleet.rf.ok("mig", "apply", uuid, "--layout", "7g.141gb")
        wait_until(lambda: fleet.fail.stopped("mig.wished"), "the jailer to be about to cut it")
        # The lowest that is free would be taken.
        lease = fleet.rf.ok("run", "-t", "acme/research/vision", "--detach", "--", "true").strip()
        assert fleet.rf.json("lease", "show", lease)["gpus"] not in ([], [uuid])
    finally:
        fleet.fail.disarm("mig.wished")
    assert fleet.ended(uuid)["order"]["state"] == "applied"
    fleet.clean(uuid)
    fleet.rf.ok("mig", "apply", uuid, "--off", "--wait")


@pytest.mark.parametrize("place", ["mig.wished", "mig.mode", "mig.made", "mig.unmade", "mig.reached"])
def test_killed_in_the_middle_it_comes_to_its_end(fleet, place):
    uuid = fleet.rf.json("mig", "show", "3")[0]["uuid"]
    wait_until(lambda: fleet.show(uuid)["state"] in ("free", "cut"), "the GPU")
    if fleet.show(uuid)["mode"] == "on":
        fleet.clean(uuid)
        fleet.rf.ok("mig", "apply", uuid, "--off", "--wait")
        wait_until(lambda: fleet.show(uuid)["state"] == "free", "the GPU to be scrubbed")
    if place == "mig.unmade":
        fleet.rf.ok("mig", "apply", uuid, "--layout", "7g.141gb", "--wait")
        fleet.clean(uuid)
    hits = fleet.fail.hits(place)
    fleet.fail.arm(place, KILL)
    fleet.rf.ok("mig", "apply", uuid, "--layout", SLICES)
    assert fleet.fail.wait_hit(place, hits), place
    view = fleet.ended(uuid)
    assert view["order"]["state"] == "applied", view
    assert fleet.layout(uuid) == [("4g.71gb", 0), ("1g.18gb", 4), ("1g.18gb", 5), ("1g.18gb", 6)]
    fleet.clean(uuid)


@pytest.mark.parametrize("victim", ["server", "agent"])
def test_server_and_agent_killed_in_the_middle(fleet, victim):
    uuid = fleet.rf.json("mig", "show", "5")[0]["uuid"]
    wait_until(lambda: fleet.show(uuid)["state"] in ("free", "cut"), "the GPU")
    aim = ("--layout", SLICES) if fleet.show(uuid)["mode"] == "off" else ("--off",)
    if fleet.show(uuid)["mode"] == "on":
        fleet.clean(uuid)
    fleet.fail.arm("mig.wished", STOP)
    try:
        fleet.rf.ok("mig", "apply", uuid, *aim)
        wait_until(lambda: fleet.fail.stopped("mig.wished"), "the jailer to be about to cut it")
        pids = (fleet.rf.pid_of("ringfence", "server") if victim == "server"
                else [pid for pid in children_of(fleet.rf.pid_of("ringfence-jailer"))])
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    finally:
        fleet.fail.disarm("mig.wished")
    assert fleet.ended(uuid)["order"]["state"] == "applied"


def test_nvml_failing_half_way_is_put_back_with_the_reason(fleet):
    uuid = fleet.rf.json("mig", "show", "6")[0]["uuid"]
    wait_until(lambda: fleet.show(uuid)["state"] == "free", "the GPU")
    fleet.cause(uuid, nvml_fail={"nvmlGpuInstanceCreateComputeInstance": {"result": 999, "after": 2}})
    done = fleet.rf("mig", "apply", uuid, "--layout", SLICES, "--wait")
    assert done.returncode == 1, done.stderr
    assert "nvmlGpuInstanceCreateComputeInstance" in done.stderr
    assert "what was there before is there again" in done.stderr
    view = fleet.show(uuid)
    assert (view["mode"], view["slices"], view["order"]["state"]) == ("off", [], "failed")
    fleet.cause(uuid, nvml_fail={})
    wait_until(lambda: fleet.show(uuid)["state"] == "free", "the GPU to be scrubbed")
    fleet.rf.ok("mig", "apply", uuid, "--layout", SLICES, "--wait")
    assert len(fleet.layout(uuid)) == 4


def test_a_file_of_mig_parted(fleet, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("version: v1\nmig-configs:\n  mixed:\n    - devices: [2]\n      mig-enabled: true\n      mig-devices:\n"
                    "        \"3g.71gb\": 2\n    - devices: [0, 1, 3, 4, 5, 6, 7]\n      mig-enabled: false\n")
    wait_until(lambda: fleet.show("2")["state"] == "free", "the GPU")
    fleet.rf.ok("mig", "apply", "2", "--file", path, "--selected-config", "mixed", "--wait")
    assert fleet.layout("2") == [("3g.71gb", 0), ("3g.71gb", 4)]
    assert fleet.rf.json("mig", "apply", "7", "--file", path, "--selected-config", "mixed")[0]["plan"]["target"] == "off"
