#!/usr/bin/python3
"""Decisions of the Cedar engine with 10,000 policies and 100,000 entities, against the reference implementation.

The mix of policies is in docs/formats/cedar.md. Where there is a cargo, `tests/peers/cedar` (the crate cedar-policy)
decides the first requests too, in turn with ours, and every decision, its determining policies and the number of
errors must be the same.

    bench/cedar.py [--requests N] [--rounds N] [--peer-requests N]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import common


def ours(*words):
    done = subprocess.run([common.BUILD / "bench" / "cedar", "--output", "json", *map(str, words)],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-requests", type=int, default=300)
    options = parser.parse_args()
    peer = common.cargo_peer("cedar")
    runs, small, theirs = [], [], []
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = pathlib.Path(name)
        for _ in range(options.rounds):
            runs.append(ours("--requests", options.requests))
            if peer is None:
                continue
            # The same few requests again and again here, so that the clock can see them.
            ours("--requests", options.peer_requests, "--dump", folder, "--decisions", folder / "ours")
            small.append(ours("--requests", options.requests, "--distinct", options.peer_requests))
            done = subprocess.run([peer, folder, folder / "theirs"], stdout=subprocess.PIPE, text=True, check=True)
            theirs.append(json.loads(done.stdout))
            if (folder / "ours").read_text() != (folder / "theirs").read_text():
                raise SystemExit("error: the reference implementation decides otherwise; see --dump and --decisions")
    p50 = [one["p50"] for one in runs]
    p99 = [one["p99"] for one in runs]
    reload_ms = [one["reload_processor_ms"] for one in runs]
    first = runs[0]
    rows = [
        (f"a decision with {first['policies']} policies and {first['entities']} entities, p50 ns", common.spread(p50, 0), "-",
         common.verdict(statistics.median(p50) <= 1000, "at most 1 µs"), "cedar-p50"),
        ("the same, p99 ns", common.spread(p99, 0), f"{first['allocations']} allocations",
         common.verdict(statistics.median(p99) <= 10000 and first["allocations"] == 0, "at most 10 µs, none"), "cedar-p99"),
        ("10,000 policies read and compiled, ms of processor time", common.spread(reload_ms),
         f"quickest by the clock {min(one['reload_ms'] for one in runs):.0f} ms, with another thread deciding: "
         f"{first['decided']} decisions meanwhile",
         common.verdict(statistics.median(reload_ms) < 200, "under 200 ms, without a pause"), "cedar-reload"),
        ("memory, bytes a policy, an entity", f"{first['policy_bytes']}, {first['entity_bytes']}", "-", "-", "cedar-memory")]
    if theirs:
        ratios = [a["rate"] / b["rate"] for a, b in zip(small, theirs)]
        rows.append(
            (f"decisions a second of processor time, {options.peer_requests} requests",
             common.spread([one["rate"] for one in small], 0),
             f"cedar-policy 4.14.1: {common.spread([one['rate'] for one in theirs], 0)}; times faster "
             f"{common.spread(ratios, 0)}; all decisions the same",
             common.verdict(statistics.median(ratios) >= 10, "at least 10 times"), "cedar-peer"))
    common.record("Cedar decisions, one core",
                  f"bench/cedar.py --requests {options.requests} --rounds {options.rounds}", rows)


main()
