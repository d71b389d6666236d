"""Goal: `mig` and `place` answer offline, in tables and JSON, and say what is wrong with file, line and column.

Method: the real program, without a server, on the vectors and on broken copies of them.
"""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"
NODES, PODS = VECTORS / "gpu-trace" / "nodes.csv", VECTORS / "gpu-trace" / "pods.csv"
PROGRAM = pathlib.Path(os.environ.get("RINGFENCE_BUILD_DIR", ROOT / "build" / "test")) / "ringfence"


def ringfence(folder, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")} | {"NO_COLOR": "1"}
    return subprocess.run([PROGRAM, *map(str, words)], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def good(folder, *words):
    done = ringfence(folder, *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_plans_and_refuses_layouts(tmp_path):
    plan = good(tmp_path, "mig", "plan", "--board", "H200-141", "--layout", "1g.18gb x3, 4g.71gb")
    assert [(i["profile"], i["start"], i["size"]) for i in plan["instances"]] == [
        ("4g.71gb", 0, 4), ("1g.18gb", 4, 1), ("1g.18gb", 5, 1), ("1g.18gb", 6, 1)]
    plan = good(tmp_path, "mig", "plan", "--board", "A100-40", "--file", VECTORS / "mig" / "config-default.yaml",
                "--selected-config", "all-balanced")
    assert sorted(i["profile"] for i in plan["instances"]) == ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]
    assert len(good(tmp_path, "mig", "plan", "--board", "MI300X-192", "--layout", "CPX/NPS4")["partitions"]) == 8
    for strategy, count in (("development", 7), ("inference", 2), ("multi-tenant", 4)):
        plan = good(tmp_path, "mig", "plan", "--board", "H200-141", "--strategy", strategy)
        assert len(plan["instances"]) == count
    done = ringfence(tmp_path, "mig", "plan", "--board", "H200-141", "--layout", "3g.71gb x2, 1g.18gb")
    assert done.returncode == 2 and "it takes 9 memory slices of 8" in done.stderr
    done = ringfence(tmp_path, "mig", "plan", "--board", "H200-141")
    assert done.returncode == 2 and "--strategy" in done.stderr


def test_lists_boards_and_checks_files(tmp_path):
    boards = {b["board"]: b for b in good(tmp_path, "mig", "boards")}
    assert {"A30-24", "A100-40", "A100-80", "H100-80", "H100-94", "H200-141", "B200-180", "MI300X-192"} <= set(boards)
    assert boards["H200-141"]["placements"] == "measured"
    assert "{0,2,4,6}:2" in ringfence(tmp_path, "mig", "boards", "H200-141").stdout
    rows = good(tmp_path, "mig", "check", VECTORS / "mig" / "config-default.yaml")
    assert {r["verdict"] for r in rows} == {"possible", "unknown board"}
    bad = tmp_path / "bad.yaml"
    bad.write_text('version: v1\nmig-configs:\n  a:\n    - devices: all\n      mig-enabled: true\n'
                   '      mig-devices: {"3g.71gb": 2, "1g.18gb": 1}\n')
    done = ringfence(tmp_path, "mig", "check", bad)
    assert done.returncode == 1 and "impossible" in done.stdout
    bad.write_text("version: v1\nmig-configs:\n  a:\n    - devices: all\n      mig-enabled: maybe\n")
    done = ringfence(tmp_path, "mig", "check", bad)
    assert done.returncode == 2 and "bad.yaml:5: mig-configs.a[0].mig-enabled" in done.stderr


@pytest.mark.parametrize("experiment", ["trace", "inflate"])
def test_replays(tmp_path, experiment):
    rows = good(tmp_path, "place", "replay", "--nodes", NODES, "--pods", PODS, "--method", "all", "--experiment",
                experiment, "--runs", "2")
    by_method = {r["method"]: r for r in rows}
    assert len(by_method) == 8 and not any(r["violations"] for r in rows)
    assert by_method["ringfence"]["allocated"] >= max(r["allocated"] for r in rows)
    assert {"p50", "p99", "max"} <= set(rows[0]["decision_us"])
    again = good(tmp_path, "place", "replay", "--nodes", NODES, "--pods", PODS, "--experiment", experiment,
                 "--runs", "2")
    assert again["allocated"] == by_method["ringfence"]["allocated"], "a seed says it all"


def test_replays_mig_and_refuses_bad_input(tmp_path):
    mix = good(tmp_path, "place", "replay", "--experiment", "mig", "--mig-nodes", "20")
    assert mix["violations"] == 0 and mix["allocated"] > 0.8
    broken = tmp_path / "nodes.csv"
    broken.write_text(NODES.read_text().replace("made-node-0003,", "made-node-0003,x", 1))
    done = ringfence(tmp_path, "place", "replay", "--nodes", broken, "--pods", PODS)
    assert done.returncode == 2 and "nodes.csv:5:2: cpu_milli" in done.stderr
    done = ringfence(tmp_path, "place", "replay", "--nodes", NODES, "--pods", PODS, "--method", "best")
    assert done.returncode == 2 and "is none of all, ringfence" in done.stderr
    assert ringfence(tmp_path, "place", "replay", "--nodes", NODES).returncode == 2


def test_the_public_trace(tmp_path):
    """Where the trace of 2023 is at hand: ours above the published method, above first-fit."""
    folder = pathlib.Path(os.environ.get("RINGFENCE_SHARED", "/nonexistent")) / "data" / "gpu-trace"
    if not folder.is_dir():
        return  # the vectors above are the test; this is more of it
    allocated = {}
    for method in ("first-fit", "fgd", "ringfence"):
        report = good(tmp_path, "place", "replay", "--nodes", folder / "openb_node_list_gpu_node.csv", "--pods",
                      folder / "openb_pod_list_default.csv", "--method", method)
        assert report["violations"] == 0 and report["pods"] == 8152 and report["gpus"] == 6212
        allocated[method] = report["allocated"]
    assert 0.92 < allocated["first-fit"] < allocated["fgd"] < allocated["ringfence"]
    assert allocated["ringfence"] > 0.955
