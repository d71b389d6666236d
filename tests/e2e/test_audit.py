"""Goal: the log proves what happened to someone who does not trust us, and no change to it passes.

Method: copies of a real log, verified offline; damaged, rolled back and forked.
"""

import json
import os
import shutil

import pytest

from conftest import wait_until


@pytest.fixture(scope="module")
def log(ringfence):
    for i in range(3):
        ringfence.ok("run", "-t", "acme/research/vision", "--", "true")
    wait_until(lambda: settled(ringfence), "everything to be proven and witnessed")
    return ringfence.state / "server" / "log"


def settled(ringfence):
    status = ringfence.json("status")
    return status["audit"]["proven"] == status["audit"]["entries"] and status["audit"]["witnesses"] == 1


def vkey(ringfence):
    return json.loads((ringfence.state / "cli" / "context.json").read_text())["log_vkey"]


def copy(ringfence, log, tmp_path, name="copy"):
    """A copy of a log that does not grow meanwhile."""
    wait_until(lambda: settled(ringfence), "the log to come to rest")
    target = tmp_path / name
    shutil.copytree(log, target, ignore=shutil.ignore_patterns("*.new", ".lock"))
    return target


def test_verify_with_nothing_but_the_copy_and_the_key(ringfence, log, tmp_path):
    target = copy(ringfence, log, tmp_path)
    done = ringfence("audit", "verify", "--log", target, "--key", vkey(ringfence),
                     env={"RINGFENCE_STATE": str(tmp_path / "nowhere")})
    assert done.returncode == 0, done.stdout + done.stderr


def test_verify_by_default_and_over_the_api(ringfence, log):
    assert ringfence("audit", "verify").returncode == 0
    report = ringfence.json("audit", "verify")
    assert report["ok"] is True and report["size"] > 10


def test_every_step_of_a_lease_is_an_entry(ringfence, log):
    lease = ringfence.json("lease", "list", "--all")[0]["id"]
    wait_until(lambda: ringfence.json("lease", "show", lease)["state"] == "closed", "it to close")
    actions = [item["entry"]["action"] for item in ringfence.json("audit", "list", "--lease", lease)]
    for action in ("lease.request", "lease.admit", "lease.place", "lease.grant", "lease.start",
                   "lease.job_end", "lease.scrub", "gpu.scrub", "lease.close"):
        assert actions.count(action) == 1, (action, actions)


def test_a_changed_entry_is_named(ringfence, log, tmp_path):
    target = copy(ringfence, log, tmp_path)
    whole = target / "tile" / "entries" / "000"
    parts = (target / "tile" / "entries" / "000.p").glob("*")
    bundle = whole if whole.exists() else max(parts, key=lambda part: int(part.name))
    data = bytearray(bundle.read_bytes())
    # Inside the third entry: lengths are two bytes, big-endian.
    at = 0
    for _ in range(2):
        at += 2 + int.from_bytes(data[at:at + 2], "big")
    data[at + 20] ^= 1
    bundle.chmod(0o644)
    bundle.write_bytes(data)
    done = ringfence("audit", "verify", "--log", target, "--key", vkey(ringfence))
    assert done.returncode == 1
    assert "entry 2" in done.stdout + done.stderr, done.stdout + done.stderr


def test_rollback_is_caught_by_a_kept_checkpoint(ringfence, log, tmp_path):
    old = copy(ringfence, log, tmp_path, "old")
    ringfence.ok("run", "-t", "acme/research/vision", "--", "true")
    wait_until(lambda: settled(ringfence), "the new entries")
    kept = tmp_path / "kept"
    kept.write_text(ringfence.ok("audit", "checkpoint"))
    done = ringfence("audit", "verify", "--log", old, "--key", vkey(ringfence), "--checkpoint", kept)
    assert done.returncode == 1 and "roll" in (done.stdout + done.stderr).lower(), done.stdout + done.stderr
    wait_until(lambda: settled(ringfence), "the new entries")
    assert ringfence("audit", "verify", "--checkpoint", kept).returncode == 0


def test_a_proof_stands_alone(ringfence, log, tmp_path):
    proof = tmp_path / "proof.json"
    ringfence.ok("audit", "prove", "3", "--out", proof)
    key = vkey(ringfence)
    assert ringfence("audit", "verify", "--proof", proof, "--key", key).returncode == 0
    text = json.loads(proof.read_text())
    text["index"] = 4
    proof.write_text(json.dumps(text, sort_keys=True, separators=(",", ":")))
    assert ringfence("audit", "verify", "--proof", proof, "--key", key).returncode == 1


def test_a_wrong_file_is_no_alarm(ringfence, log, tmp_path):
    for words in (["--checkpoint", "/etc/passwd"], ["--log", tmp_path], ["--proof", "/etc/passwd"]):
        done = ringfence("audit", "verify", *words, "--key", vkey(ringfence))
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert "NOT what was signed" not in done.stdout + done.stderr


def test_the_node_cosigns(ringfence, log):
    wait_until(lambda: settled(ringfence), "the witness")
    assert "ringfence.dev/node/" in ringfence.ok("audit", "checkpoint")
