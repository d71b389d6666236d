#!/usr/bin/python3
"""What baselines and indicators cost on one core: an update among a million series, a lookup among a
million indicators.

    bench/detect.py [--series N] [--indicators N]
"""

import argparse
import json
import subprocess

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=1_000_000)
    parser.add_argument("--indicators", type=int, default=1_000_000)
    options = parser.parse_args()
    program = common.BUILD / "bench" / "detect"
    output = subprocess.run([program, str(options.series), str(options.indicators)],
                            stdout=subprocess.PIPE, check=True, text=True).stdout
    told = json.loads(output)
    rows = [(f"baseline update, {told['series']} series, ns", str(told["update_ns"]),
             f"{told['bytes_per_series']} bytes a series; {told['update_of_1000_ns']} ns when the state is in the cache",
             common.verdict(told["update_ns"] < 1000, "under 1000 ns"), "baseline-ns")]
    for kind in ("domain", "address", "hash"):
        rows.append((f"{kind} lookup, {told['indicators']} indicators, ns", str(told[f"{kind}_ns"]),
                     f"{told['table_bytes'] >> 20} MiB of tables", common.verdict(told[f"{kind}_ns"] < 1000, "under 1000 ns"),
                     f"{kind}-lookup-ns"))
    common.record("baselines and indicators, one core",
                  f"bench/detect.py --series {options.series} --indicators {options.indicators}", rows)


main()
