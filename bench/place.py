#!/usr/bin/python3
"""How long a placement takes, for fleets of 100 to 100,000 nodes with eight GPUs each, on one core.

    bench/place.py [--nodes N,N,...] [--decisions N] [--repeat N]

A run is the same each time; of each decision the least time of several runs counts, on the core and by the clock, so
that what else the machine does is not in it.
"""

import argparse
import json
import math
import subprocess

import common

PROMISED_US = 50
PROMISED_NODES = 10000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="100,1000,10000,100000")
    parser.add_argument("--decisions", type=int, default=20000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    done = subprocess.run([common.BUILD / "bench" / "place", "--nodes", options.nodes, "--decisions",
                           str(options.decisions), "--repeat", str(options.repeat)], stdout=subprocess.PIPE, text=True, check=True)
    sizes = json.loads(done.stdout)
    rows = []
    for size in sizes:
        cpu, wall = size["cpu_us"], size["wall_us"]
        promised = size["nodes"] == PROMISED_NODES
        rows.append((f"placing on {size['nodes']:,} nodes, p99 of a decision, microseconds", f"{cpu['p99']:.1f}",
                     f"median {cpu['p50']:.1f}; by the clock {wall['p50']:.1f} and {wall['p99']:.1f}; "
                     f"{size['states']:,} states, {size['allocated'] * 100:.1f} % allocated",
                     common.verdict(cpu["p99"] < PROMISED_US, f"under {PROMISED_US}") if promised else "-",
                     "place-p99" if promised else f"place-{size['nodes']}"))
    if len(sizes) > 1:
        first, last = sizes[0], sizes[-1]
        growth = last["cpu_us"]["p50"] / first["cpu_us"]["p50"]
        logarithm = math.log(last["nodes"] * 8) / math.log(first["nodes"] * 8)
        rows.append((f"median from {first['nodes']:,} to {last['nodes']:,} nodes, times", f"{growth:.2f}",
                     f"the logarithm of the fleet: {logarithm:.2f}",
                     common.verdict(growth <= logarithm, "no faster than the logarithm"), "place-growth"))
    common.record("placement", f"bench/place.py --nodes {options.nodes} --decisions {options.decisions} "
                  f"--repeat {options.repeat}", rows)


main()
