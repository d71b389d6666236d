"""Goal: a machine becomes a node with a one-time token, works as one, and is missed when it is gone.

Method: a second agent with a jailer and a state folder of its own joins a running server.
"""

import os
import shutil
import subprocess
import tempfile

import pytest

from conftest import PROGRAM, wait_until


@pytest.fixture
def second_state():
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o755)
    yield state
    shutil.rmtree(state, ignore_errors=True)


def start_agent(state, token_file, name):
    env = {key: value for key, value in os.environ.items() if not key.startswith("RINGFENCE_")}
    return subprocess.Popen(
        [PROGRAM, "agent", "--join-token", token_file, "--node-name", name],
        env={**env, "RINGFENCE_STATE": state}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=open(os.path.join(state, "agent.log"), "w"),
    )


def stop(process):
    process.terminate()
    process.wait(timeout=60)


def node(ringfence, name):
    return next((one for one in ringfence.json("node", "list") if one["name"] == name), None)


def test_a_second_node_joins_once_and_is_missed(ringfence, second_state, tmp_path):
    token_file = tmp_path / "token"
    token_file.write_text(ringfence.json("node", "token", "create", "second")["token"])
    token_file.chmod(0o600)
    agent = start_agent(second_state, token_file, "second")
    try:
        wait_until(lambda: (node(ringfence, "second") or {}).get("state") == "ready", "the node")

        def all_free():
            return [one["state"] for one in ringfence.json("gpu", "list") if one["node"] == "second"] == ["free"] * 8

        wait_until(all_free, "its GPUs to be scrubbed")
        # The token was good once; a stranger who finds it gets nothing.
        other = tempfile.mkdtemp(prefix="ringfence-e2e-")
        os.chmod(other, 0o755)
        stranger = start_agent(other, token_file, "second")
        assert stranger.wait(timeout=60) != 0
        with open(os.path.join(other, "agent.log")) as log:
            assert "used before" in log.read()
        shutil.rmtree(other, ignore_errors=True)
        joins = [item["entry"] for item in ringfence.json("audit", "list", "--action", "node.join")]
        assert [one["node"] for one in joins].count("second") == 1
    finally:
        stop(agent)
    wait_until(lambda: node(ringfence, "second")["state"] == "silent", "the node to be missed", seconds=90)
    assert ringfence("status").returncode == 1
    assert ringfence.ok("run", "-t", "acme/research/vision", "--", "echo", "here") == "here\n"


def test_a_token_that_others_can_read_is_refused(ringfence, second_state, tmp_path):
    token_file = tmp_path / "token"
    token_file.write_text(ringfence.json("node", "token", "create", "third")["token"])
    token_file.chmod(0o644)
    agent = start_agent(second_state, token_file, "third")
    assert agent.wait(timeout=60) != 0
    with open(os.path.join(second_state, "agent.log")) as log:
        assert "chmod 600" in log.read()
