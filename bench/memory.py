#!/usr/bin/python3
"""Resident memory of an idle Ringfence with eight simulated GPUs, after it has run a job.

    bench/memory.py [--idle SECONDS]
"""

import argparse
import time

import common

PROMISED_MB = {"server": 60, "agent": 30, "jailer": 10}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=float, default=10)
    options = parser.parse_args()
    common.need_root()
    with common.ringfence() as ringfence:
        ringfence.ok("run", "-t", common.TENANT, "--", "true")
        time.sleep(options.idle)
        pids = ringfence.pids()
        rows = []
        for name, promised in PROMISED_MB.items():
            used = common.resident_mb(pids[name])
            rows.append((f"{name}, resident, MB", f"{used:.1f}", f"{common.open_files(pids[name])} open files",
                         common.verdict(used < promised, f"under {promised} MB"), f"{name}-mb"))
    common.record("resident memory, idle", f"bench/memory.py --idle {options.idle:g}", rows)


main()
