#!/usr/bin/python3
"""`ringfence run -- true`, warm, against bare `runc run` of the same bundle, in turn.

The bundle is the one that the jailer makes for such a lease, with its walls, mounts and cgroup limits;
runc is started where the jailer starts it, from a process that does nothing else. Between two samples
the lease's GPU is waited for until it is scrubbed and free again, as runc too has cleaned up when it ends.

    bench/run_latency.py [--samples N]
"""

import argparse
import contextlib
import fcntl
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import common

RUNC = "/usr/sbin/runc"
PROMISE_MS = 25


def bare_runc(bundle, config):
    """Inside the jailer's mounts: one `runc run` for each line of stdin, and its milliseconds."""
    folder = f"/run/ringfence-bench-{os.getpid()}"
    os.makedirs(folder)
    os.symlink(f"{bundle}/root", f"{folder}/root")
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        file.write(config)
    # ringfence-init reports over descriptor 3, and ends when nobody is there to hear it.
    ours, its = socket.socketpair()
    ours = socket.socket(fileno=fcntl.fcntl(ours.detach(), fcntl.F_DUPFD_CLOEXEC, 20))
    os.dup2(its.detach(), 3)
    ours.setblocking(False)
    try:
        for count, _ in enumerate(sys.stdin):
            start = time.perf_counter()
            with subprocess.Popen([RUNC, "--root", f"{folder}/runtime", "run", "--bundle", folder, "--preserve-fds", "1",
                                   f"bare-{os.getpid()}-{count}"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, pass_fds=(3,)) as runc:
                code = runc.wait()
            with contextlib.suppress(BlockingIOError):
                ours.recv(65536)
            print(json.dumps({"ms": (time.perf_counter() - start) * 1000, "code": code}), flush=True)
    finally:
        subprocess.run(["rm", "-rf", folder], check=False)


class BareRunc:
    """The same bundle, run by runc alone, for as long as a lease keeps its files there."""

    def __init__(self, ringfence):
        self.ringfence = ringfence
        self.lease = ringfence.ok("run", "-t", common.TENANT, "--detach", "--", "sleep", "86400").strip()
        while ringfence.json("lease", "show", self.lease)["state"] != "active":
            time.sleep(0.05)
        self.enter = ["nsenter", "-t", str(ringfence.pids()["jailer"]), "-m"]
        bundle = f"/run/ringfence/bundles/{self.lease}"
        config = json.loads(subprocess.run([*self.enter, "cat", f"{bundle}/config.json"], check=True,
                                           stdout=subprocess.PIPE).stdout)
        config["linux"]["cgroupsPath"] += "-bare"
        words = config["process"]["args"]
        config["process"]["args"] = words[: len(words) - 2] + ["true"]
        assert words[-2:] == ["sleep", "86400"], words
        self.process = subprocess.Popen([*self.enter, sys.executable, os.path.abspath(__file__), "--bare", bundle,
                                         json.dumps(config)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def run(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["code"] == 0, answer
        return answer["ms"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.ringfence.ok("lease", "end", self.lease)


def run_ours(ringfence):
    start = time.perf_counter()
    subprocess.run([common.PROGRAM, "run", "-t", common.TENANT, "--", "true"], env=ringfence.env, check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def settle(ringfence):
    while ringfence.json("status")["leases"]["open"] > 1:
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--bare", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        bare_runc(*options.bare)
        return
    common.need_root()
    with common.ringfence() as ringfence:
        bare = BareRunc(ringfence)
        for _ in range(3):
            run_ours(ringfence)
            bare.run()
        settle(ringfence)
        ours, theirs = [], []
        for _ in range(options.samples):
            theirs.append(bare.run())
            ours.append(run_ours(ringfence))
            settle(ringfence)
        bare.close()
    over = statistics.median(ours) - statistics.median(theirs)
    common.record(
        "what a lease costs on top of runc", f"bench/run_latency.py --samples {options.samples}",
        [("`ringfence run -- true`, warm, median (least to most), ms", common.spread(ours),
          f"`runc run` of the same bundle: {common.spread(theirs)}; over it by {over:.1f}",
          common.verdict(over <= PROMISE_MS, f"at most {PROMISE_MS} ms over runc"), "run")])


main()
