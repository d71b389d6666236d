#!/usr/bin/python3
"""The live path, from agents to stored and evaluated: simulated nodes join a real server and deliver readings over TLS
with their certificates; every record must be there as one event, seen by all rules, and the server's memory flat.

The generator runs on the same cores. With --kill the server is killed with SIGKILL in the middle and started again.

    bench/live.py [--seconds S] [--rate R] [--nodes N] [--batch B] [--kill]
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time

import common

PROGRAM = common.BUILD / "bench" / "live"


def tokens(ringfence, count):
    return [ringfence.json("node", "token", "create", f"bench-{i}")["token"] for i in range(count)]


def detection(ringfence):
    return json.loads(ringfence.ok("status", "-o", "json"))["detection"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=50_000, help="records a second of all nodes; 0: no limit")
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    common.need_root()
    with common.ringfence(RINGFENCE_SERVER_REQUESTS_PER_SECOND="1000000") as ringfence:
        pids = ringfence.pids()
        os.kill(pids["agent"], signal.SIGSTOP)  # its own records would be counted too
        words = [PROGRAM, str(options.seconds), str(options.rate), str(options.batch), *tokens(ringfence, options.nodes)]
        time.sleep(2)
        server = pids["server"]
        before, cpu, behind, memory = detection(ringfence)["events"], common.cpu_seconds(server), [], []
        begun = time.monotonic()
        load = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        while load.poll() is None:
            time.sleep(min(5, options.seconds / 20))
            if options.kill and time.monotonic() - begun > options.seconds / 2:
                options.kill = False
                os.kill(server, signal.SIGKILL)
                while ringfence.pids().get("server", server) == server:
                    time.sleep(0.1)
                server, cpu = ringfence.pids()["server"], 0
                continue
            memory.append(common.resident_mb(server))
            behind.append(detection(ringfence)["behind"])
        told = json.loads(load.stdout.read())
        while detection(ringfence)["behind"] > 0:
            time.sleep(0.05)
        passed = time.monotonic() - begun
        events = detection(ringfence)["events"] - before
        used = common.cpu_seconds(server) - cpu
        node_rows = ringfence.json("node", "list")
        os.kill(pids["agent"], signal.SIGCONT)
        half = memory[len(memory) // 3:] or memory
        rate = told["acknowledged"] / passed
        rows = [("records stored and evaluated a second, generator on the same cores", f"{rate:.0f}",
                 f"{told['acknowledged']} in {passed:.0f} s from {options.nodes} nodes in batches of {options.batch}; "
                 f"slowest acknowledgement {told['slowest_ms']} ms; most events behind {max(behind, default=0)}",
                 common.verdict(rate >= 49_500, "50,000 a second on 2 cores"), "live-rate"),
                ("records acknowledged and not stored as events, or stored twice",
                 str(told["acknowledged"] - events), f"{told['sent_again']} deliveries sent again",
                 common.verdict(events >= told["acknowledged"], "none is lost")),
                ("server's CPU for each, microseconds", f"{used / max(1, told['acknowledged']) * 1e6:.1f}", "-", "-"),
                ("server's memory after the first third, MB", f"{min(half):.0f} to {max(half):.0f}",
                 f"{memory[0] if memory else 0:.0f} at first", common.verdict(max(half) < min(half) * 1.25, "flat"))]
        common.record("live path, agent to stored and evaluated", "bench/live.py " + " ".join(os.sys.argv[1:]), rows)


main()
