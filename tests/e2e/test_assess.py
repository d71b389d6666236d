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


def test_developers_do_not_read_where_nodes_are_weak(ringfence, developer):
    denied = ringfence("assess", "fleet", token=developer)
    assert denied.returncode == 3, denied.stdout
