"""Baselines and indicators on files, as somebody without a server tries them."""

import json
import os
import pathlib
import random
import subprocess

import pytest
from conftest import BUILD, ROOT

SHARED = pathlib.Path(os.environ.get("RINGFENCE_SHARED", "/nonexistent")) / "data"


def ringfence(*words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")}
    return subprocess.run([BUILD / "ringfence", *map(str, words)], env={**env, "NO_COLOR": "1"}, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=300, check=False)


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(name="series")
def _series(tmp_path):
    dice = random.Random(1)
    rows = [(1790000000 + 60 * i, 95 if 400 <= i < 460 else dice.choice([0, 0, dice.uniform(5, 30)])) for i in range(500)]
    path = tmp_path / "load.csv"
    path.write_text("timestamp,value\n" + "".join(f"{t},{v:.2f}\n" for t, v in rows))
    return path


def test_run_judges_every_row(series):
    done = ringfence("anomaly", "run", "--input", series, "--output", "json")
    assert done.returncode == 0, done.stderr
    rows = lines(done)
    assert len(rows) == 500
    assert set(rows[0]) == {"timestamp", "value", "score", "alarm", "reason"}
    assert rows[0]["timestamp"] == "1790000000"
    alarms = [i for i, row in enumerate(rows) if row["alarm"]]
    assert alarms and all(400 <= i <= 405 for i in alarms)
    assert "as a rule" in rows[alarms[0]]["reason"]
    table = ringfence("anomaly", "run", "--input", series)
    assert "WHY" in table.stdout and "1 alarm in 500 rows" in table.stderr


def test_bad_rows_are_named(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("timestamp,value\n100,1\n160,nan\n50,2\n220,x\n")
    done = ringfence("anomaly", "run", "--input", path, "--output", "json")
    assert done.returncode == 1
    assert len(lines(done)) == 2
    assert f"{path}:3: set aside" in done.stderr and f"{path}:5: set aside" in done.stderr
    assert "not after" in done.stderr
    path.write_text("nothing\n")
    done = ringfence("anomaly", "run", "--input", path)
    assert done.returncode == 2 and str(path) in done.stderr


def test_benchmark_score():
    folder = ROOT / "tests/vectors/nab"
    done = ringfence("anomaly", "score", "--data", folder, "--profiles", folder / "profiles.json", "--output", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [s["profile"] for s in told["scores"]] == ["standard", "reward_low_FP_rate", "reward_low_FN_rate"]
    assert told["scores"][0]["score"] > 80
    if SHARED.is_dir():  # all that we have of the benchmark
        done = ringfence("anomaly", "score", "--data", SHARED / "nab", "--output", "json")
        assert json.loads(done.stdout)["scores"][0]["alarm_score"] > 75


def test_pods_and_pasted_attacks(tmp_path):
    """On real telemetry where it is; on made-up pods, with room to spare, everywhere."""
    path = SHARED / "gpu-telemetry/gpu_duty_cycle.csv"
    alarms_a_day = 1
    if not path.exists():
        alarms_a_day = 2  # a day and a third of noise: one alarm more or less says little
        dice = random.Random(2)
        path = tmp_path / "pods.csv"
        path.write_text("".join(f"{1662858720 + 57 * i},pod{pod},{dice.choice([0, 0, dice.uniform(5, 40)]):.1f}\n"
                                for i in range(506) for pod in range(8)))
    done = ringfence("anomaly", "evaluate", "--input", path, "--trials", "5", "--output", "json")
    assert done.returncode == 0, done.stderr
    parts = json.loads(done.stdout)
    for part in parts:
        assert part["false_alarms"] / part["days"] <= alarms_a_day, part
    for i, least in enumerate((0.95, 0.7)):
        tried = sum(part["attacks"][i]["tried"] for part in parts)
        assert sum(part["attacks"][i]["found"] for part in parts) / tried >= least, parts


def test_intel(tmp_path):
    (tmp_path / "list.txt").write_text("# source: desk\n203.0.113.0/24 confidence=60\npool.example\nwhat is this\n"
                                       "old.example expires=2020-01-01T00:00:00Z\n")
    (tmp_path / "feed.json").write_text(json.dumps({"type": "bundle", "id": "bundle--1", "objects": [
        {"type": "indicator", "id": "indicator--1", "valid_from": "2020-01-01T00:00:00Z", "pattern_type": "stix",
         "pattern": "[network-traffic:dst_port = 3333] REPEATS 2 TIMES WITHIN 60 SECONDS"}]}))
    (tmp_path / "events.jsonl").write_text("\n".join([
        '{"time": 1700000000000, "dst_endpoint": {"ip": "203.0.113.9", "port": 3333}}',
        '{"time": 1700000030000, "dst_endpoint": {"ip": "192.0.2.1", "port": 3333}}',
        '{"type": "domain-name", "value": "x.pool.example"}',
        "oops",
        '{"type": "domain-name", "value": "old.example"}']) + "\n")
    checked = ringfence("intel", "check", tmp_path / "list.txt")
    assert checked.returncode == 1 and "list.txt:4: " in checked.stdout
    assert ringfence("intel", "check", tmp_path / "feed.json").returncode == 0
    listed = ringfence("intel", "list", tmp_path / "list.txt", "--output", "json")
    assert json.loads(listed.stdout)["total"] == 3
    done = ringfence("intel", "match", "--indicators", tmp_path / "list.txt", "--indicators", tmp_path / "feed.json",
                     "--events", tmp_path / "events.jsonl", "--output", "json")
    assert done.returncode == 1 and "events.jsonl:4: set aside" in done.stderr
    assert [(m["line"], m["indicator"]["id"].rsplit("/", 1)[-1]) for m in lines(done)] == [
        (1, "list.txt:2"), (2, "indicator--1"), (3, "list.txt:3")]
    assert lines(done)[0]["indicator"]["confidence"] == 60
    wrong = ringfence("intel", "match", "--pattern", "[a:b = ]", "--events", tmp_path / "events.jsonl")
    assert wrong.returncode == 2 and "column 8" in wrong.stderr
    if SHARED.is_dir():
        bundle = ringfence("intel", "list", SHARED / "stix/attack-linux-containers.json", "--output", "json")
        assert bundle.returncode == 0 and len(json.loads(bundle.stdout)["techniques"]) == 32
