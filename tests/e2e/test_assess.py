"""Assessments of a fleet: a real node tells a real server, which keeps, compares and makes events of what is new."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import PROGRAM, ROOT, Ringfence, wait_until


@pytest.fixture(scope="module")
def ringfence():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o755)
    instance = Ringfence(state)
    instance.assess_every = "6h"
    instance.up()
    yield instance
    instance("down")
    shutil.rmtree(state, ignore_errors=True)


def send(ringfence, checks):
    """As the service does, with checks that the test made."""
    time.sleep(1.1)  # the server takes one a second
    env = {**ringfence.environment(), "RINGFENCE_STATE": str(ringfence.state)}
    done = subprocess.run([PROGRAM, "assess", "send", "--checks", checks], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


CHECK = """class: host
checks:
  - id: probe-file
    title: The file is not there
    why: a test
    probe: {{kind: file, path: "{path}"}}
    expect: {{none: true}}
    absent: pass
    likelihood: 4
    impact: 5
    fix: remove it
    controls: ["nist:cm-6"]
    tests: {{}}
"""


def test_a_node_is_assessed_by_itself_and_new_failures_become_events(ringfence, tmp_path):
    def assessed():
        return ringfence.json("assess", "fleet")

    wait_until(assessed, "the node's first assessment", 60)
    [node] = assessed()
    assert 0 <= node["score"] <= 100 and node["baseline"] == "none" and node["points"]
    shown = ringfence.json("assess", "node", node["node"])
    assert len(shown["checks"]) > 200
    assert ringfence.json("audit", "list", "--action", "node.assess") == [], "a first time is no news"

    marker = tmp_path / "marker"
    checks = tmp_path / "checks"
    checks.mkdir()
    (checks / "host.yaml").write_text(CHECK.format(path=marker))
    send(ringfence, checks)
    marker.write_text("x")
    send(ringfence, checks)
    [entry] = ringfence.json("audit", "list", "--action", "node.assess")
    assert [one["id"] for one in entry["entry"]["detail"]["new_failures"]] == ["probe-file"]

    def events():
        return [json.loads(line) for line in ringfence.ok("event", "search", "--log", "assess", "--output", "json").splitlines()]

    wait_until(events, "the event of the new failure", 30)
    [event] = events()
    assert event["finding_info"]["uid"] == "probe-file" and event["severity"] == "critical"
    send(ringfence, checks)
    assert len(ringfence.json("audit", "list", "--action", "node.assess")) == 1, "the same failure is no news"

    # Drift against a baseline that is on the node.
    ringfence.ok("baseline", "record", "--root", ROOT / "tests" / "roots" / "good")
    send(ringfence, checks)
    [node] = assessed()
    assert node["baseline"] == "drifted" and node["drift"] > 0
    baseline = pathlib.Path(ringfence.state, "baseline.json")
    baseline.write_text(baseline.read_text().replace('"sig":"', '"sig":"A', 1))
    send(ringfence, checks)
    assert assessed()[0]["baseline"] == "refused"
    for name in ("json", "pub", "key"):
        os.unlink(pathlib.Path(ringfence.state, f"baseline.{name}"))

    done = ringfence("assess", "diff", node["node"], node["node"])
    assert done.returncode == 0 and "the same" in done.stdout
    assert ringfence("assess", "node", "nobody").returncode == 4


def test_risks_and_exposure_come_from_what_the_server_remembers(ringfence, tmp_path):
    wait_until(lambda: ringfence.json("assess", "fleet"), "the node's first assessment", 60)
    [node] = [one["node"] for one in ringfence.json("assess", "fleet")]
    ringfence.ok("run", "-t", "acme/research/vision", "--", "true")
    register = ["--register", str(tmp_path / "risk.json")]
    [brought] = ringfence.json("risk", "update", "--fleet", *register)
    assert brought["node"] == node and brought["opened"] > 0
    assert ringfence.json("risk", "update", "--fleet", *register) == [], "the same assessment is no news"
    risks = ringfence.json("risk", "list", *register)
    assert all(risk["node"] == node and risk["fix"] for risk in risks if risk["check"] != "probe-file")

    # A made-up bulletin for the branch of the simulated driver.
    bulletins = tmp_path / "bulletins"
    bulletins.mkdir()
    text = (ROOT / "tests" / "vectors" / "bulletins" / "2030" / "9001.json").read_text()
    (bulletins / "9001.json").write_text(text.replace("R550", "R580").replace("550.9", "580.9"))
    exposure = ringfence.json("advisory", "exposure", "--csaf", bulletins, "--cve", "CVE-2030-0001")
    spans = [one for one in exposure["nodes"] if one["node"] == node]
    assert spans and spans[0]["to"] is None and spans[0]["simulated"]
    assert "acme/research/vision" in [one["tenant"] for one in exposure["tenants"]]
    assert ringfence.json("advisory", "exposure", "--csaf", bulletins, "--tenant", "nobody")["leases"] == []


def test_what_changes_is_sent_without_waiting(ringfence, tmp_path):
    marker = tmp_path / "marker"
    checks = tmp_path / "checks"
    checks.mkdir()
    (checks / "host.yaml").write_text(CHECK.format(path=marker).replace("probe-file", "watched-file"))
    env = {**ringfence.environment(), "RINGFENCE_STATE": str(ringfence.state)}
    service = subprocess.Popen([PROGRAM, "assess", "send", "--every", "6h", "--watch", "1s", "--checks", checks], env=env, stderr=subprocess.PIPE, text=True)

    def result():
        [node] = [one["node"] for one in ringfence.json("assess", "fleet")]
        return {one["id"]: one["result"] for one in ringfence.json("assess", "node", node)["checks"]}.get("watched-file")

    try:
        wait_until(lambda: result() == "pass", "the first look", 60)
        marker.write_text("x")
        wait_until(lambda: result() == "fail", "the change", 60)
    finally:
        service.terminate()
        assert service.wait(timeout=30) == 0, service.stderr.read()


def test_developers_do_not_read_where_nodes_are_weak(ringfence, developer):
    denied = ringfence("assess", "fleet", token=developer)
    assert denied.returncode == 3, denied.stdout
