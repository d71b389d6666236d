#!/usr/bin/python3
"""Half an hour of jobs and requests: does anything grow that should not?

Jobs run one after another for real (`ringfence run -- true`: box, scrub, receipt), while the API is asked
at a modest rate for a mix of reads, denied requests, audit reads and long polls. Memory and open files of
server, agent and jailer are sampled; the slope is a straight line through all samples after the first
third, when caches are full.

    bench/soak.py [--minutes M] [--rate N] [--every S] [--output FILE]
"""

import argparse
import csv
import subprocess
import sys
import threading
import time

import common

MIX = "read=40,list=10,status=10,denied=10,audit=5,poll=5"
NAMES = ("server", "agent", "jailer")
# What a line through noise may show: a process that leaks a page for each job or request shows far more.
SLOPE_MB_PER_HOUR = 4.0


class Jobs(threading.Thread):
    def __init__(self, ringfence):
        super().__init__()
        self.ringfence = ringfence
        self.done = threading.Event()
        self.ran = 0
        self.failed = 0
        self.waited = 0
        self.last_failure = ""

    def run(self):
        while not self.done.is_set():
            try:
                self.ringfence.ok("run", "-t", common.TENANT, "--", "true")
                self.ran += 1
            except RuntimeError as failure:
                if "no node has 1 free GPU now" in str(failure):  # all of them are being scrubbed
                    self.waited += 1
                else:
                    self.failed += 1
                    self.last_failure = " ".join(str(failure).split())[-300:]
                time.sleep(1)


class Requests(threading.Thread):
    def __init__(self, ringfence, rate):
        super().__init__()
        self.ringfence = ringfence
        self.rate = rate
        self.done = threading.Event()
        self.answered = 0
        self.unanswered = 0
        self.statuses = {}
        self.p99_ms = []

    def run(self):
        while not self.done.is_set():
            [report] = self.ringfence.load("--mix", MIX, "--rate", self.rate, "--connections", 64, "--seconds", 30,
                                           "--warmup", 0)
            for op in report["ops"]:
                self.unanswered += op["unanswered"]
                for status, count in op["statuses"].items():
                    self.statuses[status] = self.statuses.get(status, 0) + count
                    self.answered += count
                if op["op"] == "read":
                    self.p99_ms.append(op["latency"]["p99_us"] / 1000)


def slope_per_hour(points):
    """Of the line of least squares through (seconds, value)."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    under = sum((x - mean_x) ** 2 for x, _ in points)
    return over / under * 3600 if under else 0.0


def sample(ringfence, start):
    pids = ringfence.pids()
    row = {"seconds": round(time.monotonic() - start)}
    for name in NAMES:
        row[f"{name}_mb"] = round(common.resident_mb(pids[name]), 2)
        row[f"{name}_files"] = common.open_files(pids[name])
    return row


def watch(ringfence, options, jobs):
    start = time.monotonic()
    rows = []
    told = 0.0
    while time.monotonic() - start < options.minutes * 60:
        rows.append(sample(ringfence, start))
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f"{rows[-1]['seconds']:5} s  " + "  ".join(
                f"{name} {rows[-1][f'{name}_mb']} MB {rows[-1][f'{name}_files']} files" for name in NAMES) +
                f"  {jobs.ran} jobs", file=sys.stderr, flush=True)
        time.sleep(options.every)
    return rows


def report(options, rows, jobs, requests, verified):
    settled = [row for row in rows if row["seconds"] >= rows[-1]["seconds"] / 3]
    table = []
    for name in NAMES:
        points = [(row["seconds"], row[f"{name}_mb"]) for row in settled]
        slope = slope_per_hour(points)
        files = [row[f"{name}_files"] for row in rows]
        late = max(files[-len(files) // 3:])
        early = max(files[: len(files) // 3])
        table.append((f"{name}: resident MB at the end, slope in MB an hour", f"{points[-1][1]:.1f}, {slope:+.2f}",
                      f"{min(y for _, y in points):.1f} to {max(y for _, y in points):.1f} after the first third",
                      common.verdict(slope <= SLOPE_MB_PER_HOUR, "flat"), f"soak-{name}"))
        table.append((f"{name}: open files, most in the first and in the last third", f"{early}, {late}", "-",
                      common.verdict(late <= early + 8, "bounded")))
    table.append(("jobs run, failed", f"{jobs.ran}, {jobs.failed}",
                  jobs.last_failure or f"{jobs.waited} times every GPU was being scrubbed",
                  common.verdict(jobs.failed == 0, "none fails"), "soak-jobs"))
    table.append(("requests answered, unanswered", f"{requests.answered}, {requests.unanswered}",
                  ", ".join(f"{status}: {count}" for status, count in sorted(requests.statuses.items())),
                  common.verdict(requests.unanswered == 0, "every one is answered"), "soak-requests"))
    table.append(("p99 of a read, ms, by half minutes", common.spread(requests.p99_ms), "open loop", "-"))
    table.append(("the audit log afterwards", "verifies" if verified else "does not verify", "-",
                  common.verdict(verified, "verifies")))
    common.record(f"soak of {options.minutes:g} minutes", f"bench/soak.py --minutes {options.minutes:g} "
                  f"--rate {options.rate} --every {options.every:g}", table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=int, default=80, help="requests a second")
    parser.add_argument("--every", type=float, default=5, help="seconds between samples")
    parser.add_argument("--output", help="the samples as CSV")
    options = parser.parse_args()
    common.need_root()
    with common.ringfence() as ringfence:
        ringfence.ok("run", "-t", common.TENANT, "--", "true")
        jobs, requests = Jobs(ringfence), Requests(ringfence, options.rate)
        jobs.start()
        requests.start()
        try:
            rows = watch(ringfence, options, jobs)
        finally:
            jobs.done.set()
            requests.done.set()
            jobs.join()
            requests.join()
        verified = subprocess.run([common.PROGRAM, "audit", "verify"], env=ringfence.env, check=False,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    if options.output:
        with open(options.output, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    report(options, rows, jobs, requests, verified)


main()
