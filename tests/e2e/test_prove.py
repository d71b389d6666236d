"""Goal: `ringfence prove` attacks the walls that a node really builds, each attack is shown to work without
them, and what came of it is judged by the jailer's signature and is in the audit log.

Method: the real command line, server, agent and jailer; real boxes; simulated GPUs. A boundary is broken by
hand (a leak that a test writes down) to see that placement heeds it.
"""

import json

import pytest

from conftest import Api, wait_until


@pytest.fixture(scope="module")
def proofs(ringfence):
    """Every probe, once."""
    done = ringfence("prove", "--output", "json", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_there_are_thirty_that_hold_and_whose_controls_get_through(proofs):
    held = [name for name, probe in proofs["probes"].items() if probe["result"] == "held"]
    other = {name: (p["result"], p["why"]) for name, p in proofs["probes"].items() if p["result"] != "held"}
    assert len(held) >= 30, other
    assert all(result == "could not be tried" and why for result, why in other.values()), other
    assert proofs["classes"]["gpu"]["grade"] == "held" and proofs["simulated"]


def test_it_is_in_the_audit_log_and_shown_again(ringfence, proofs):
    [entry] = [e for e in ringfence.json("audit", "list", "--action", "node.prove")]
    assert entry["entry"]["detail"]["leaked"] == 0, entry
    assert entry["entry"]["detail"]["results"] == {n: p["result"] for n, p in proofs["probes"].items()}
    assert ringfence.json("prove", "--last")["probes"] == proofs["probes"]
    assert "held" in ringfence.ok("prove", "--last", "--probe", "ptrace")


def test_nothing_is_left_behind(ringfence, proofs):
    assert ringfence.json("lease", "list") == []
    assert {gpu["state"] for gpu in ringfence.json("gpu", "list")} == {"free"}


def test_a_weak_box_cannot_be_had_for_anything_else(ringfence, developer):
    """Nobody but who may prove gets a probe's box, and nothing but the probe runs in one."""
    def api(method, path, body, token=None):
        status, _, text = Api(ringfence, token)(method, path, body)
        return status, json.loads(text)

    node = ringfence.json("node", "list")[0]["name"]
    probe = {"node": node, "name": "ptrace", "role": "attack", "walls_away": ["seccomp"], "facts": []}
    ask = {"tenant": "ringfence-proof-attacker", "gpus": 0, "probe": probe}
    assert api("POST", "/v1/leases", ask, token=developer)[0] == 403
    status, problem = api("POST", "/v1/leases", {**ask, "command": ["/bin/sh"]})
    assert status == 400 and "own command" in json.dumps(problem), problem
    status, problem = api("POST", "/v1/leases", {**ask, "tenant": "acme/research/vision"})
    assert status == 400, problem
    status, problem = api("POST", "/v1/leases", {**ask, "mounts": [{"name": "data", "path": "/data"}]})
    assert status == 400, problem
    # The jailer has the last word about which walls there are.
    status, lease = api("POST", "/v1/leases", {**ask, "probe": {**probe, "walls_away": ["everything"]}})
    assert status == 201, lease
    over = wait_until(lambda: (lambda seen: seen["state"] == "closed" and seen)(
        ringfence.json("lease", "show", lease["id"])), "the refusal")
    assert over["outcome"] == "failed" and "everything" in over["reason"], over


def test_what_did_not_run_is_not_held(ringfence, proofs):
    """A client's word alone counts for nothing."""
    node = ringfence.json("node", "list")[0]["name"]
    before = proofs["probes"]["ptrace"]

    def judged(attack, control):
        status, _, text = Api(ringfence)("POST", f"/v1/nodes/{node}/proofs", {"probes": [
            {"name": "ptrace", "attack": attack, "control": control}]})
        assert status == 201, text
        return json.loads(text)["probes"]["ptrace"]["result"]

    assert judged(before["control"], before["attack"]) == "could not be tried"
    assert judged("lease-of-nobody", before["control"]) == "could not be tried"
    assert judged(before["attack"], "") == "could not be tried"
    assert judged(before["attack"], before["control"]) == "held"
