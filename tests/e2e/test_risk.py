"""`ringfence risk` as installed: the shipped checks and model are found, and the register lies in the state folder."""

import json
import os
import pathlib
import stat
import subprocess

from conftest import PROGRAM, ROOT


def risk(state, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")}
    env.update({"RINGFENCE_STATE": str(state), "NO_COLOR": "1"})
    return subprocess.run([PROGRAM, "risk", *map(str, words)], env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_fleet_in_a_register(tmp_path):
    state = tmp_path / "state"
    for node, root in (("a", "bad"), ("b", "good")):
        done = risk(state, "update", "--root", ROOT / "tests" / "roots" / root, "--node", node, "--tenants", "2")
        assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(pathlib.Path(state, "risk.json").stat().st_mode) == 0o600
    scores = json.loads(risk(state, "show", "-o", "json").stdout)
    by_node = {one["node"]: one for one in scores["nodes"]}
    assert by_node["a"]["score"] < scores["fleet"]["score"] < by_node["b"]["score"]
    for one in [*by_node.values(), scores["fleet"]]:  # the arithmetic that the page of docs promises
        lost, everything = (int(2 * float(one[name])) for name in ("lost", "all"))  # halves
        assert one["score"] == (100 * everything - 100 * lost) // everything
    worst = json.loads(risk(state, "list", "-o", "json").stdout)[0]
    assert worst["risk"] == worst["likelihood"] * worst["impact"] and worst["node"] == "a"
    page = risk(state, "report").stdout
    assert page.startswith("<!doctype html>") and "<script" not in page
