#!/usr/bin/python3
"""Authorised reads over TLS against a bare Beast TLS echo of the same bytes.

A read is GET /v1/leases/ID: bearer token verified and looked up, policy asked, lease read from the
database, JSON written. The echo answers the same request with the same body and does nothing else.
Both are driven by the same generator on the same cores, in turn, so that what else runs here hits both.

    bench/api.py [--rounds N] [--seconds S] [--connections N]
"""

import argparse
import json
import statistics
import subprocess
import tempfile

import common


def cpu_of(seconds, report):
    """Microseconds of CPU for each request; the warm-up of a second was as busy as the rest."""
    return seconds * 1e6 / (report["per_second"] * (report["seconds"] + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    common.need_root()
    each = ("--mix", "read", "--rate", "max", "--seconds", options.seconds, "--connections", options.connections)
    with common.ringfence(RINGFENCE_SERVER_REQUESTS_PER_SECOND="1000000") as ringfence, \
            tempfile.TemporaryDirectory() as folder:
        lease = ringfence.json("run", "-t", common.TENANT, "--", "true")
        body = f"{folder}/body"
        with open(body, "w", encoding="utf-8") as file:
            json.dump(lease, file, separators=(",", ":"))
        with subprocess.Popen([common.BUILD / "bench" / "echo", body, f"{folder}/ca.pem"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as echo:
            address = echo.stdout.readline().strip()
            ours, theirs, p99, our_cpu, their_cpu = [], [], [], [], []
            server = ringfence.pids()["server"]
            for _ in range(options.rounds):
                before = common.cpu_seconds(echo.pid)
                report = common.load("--server", address, "--ca", f"{folder}/ca.pem", "--lease", lease["id"], *each)[0]
                theirs.append(report["per_second"])
                their_cpu.append(cpu_of(common.cpu_seconds(echo.pid) - before, report))
                before = common.cpu_seconds(server)
                report = ringfence.load("--lease", lease["id"], *each)[0]
                our_cpu.append(cpu_of(common.cpu_seconds(server) - before, report))
                ours.append(report["per_second"])
                p99.append(report["ops"][0]["latency"]["p99_us"] / 1000)
                assert set(report["ops"][0]["statuses"]) == {"200"}, report
            echo.stdin.close()
    ratios = [a / b for a, b in zip(ours, theirs)]
    ratio = statistics.median(ratios)
    rate = statistics.median(ours)
    common.record(
        "authorised reads", f"bench/api.py --rounds {options.rounds} --seconds {options.seconds:g} "
        f"--connections {options.connections}",
        [("authorised reads a second, TLS keep-alive, generator on the same cores", common.spread(ours, 0),
          f"bare Beast TLS echo: {common.spread(theirs, 0)}; ratio {common.spread(ratios, 2)}",
          common.verdict(rate >= 20000 or ratio >= 0.7, "20,000 a second, or 0.70 of the echo"), "api"),
         ("CPU of the server for each read, microseconds", common.spread(our_cpu),
          f"echo: {common.spread(their_cpu)}", "-"),
         ("p99 of a read at that rate, ms", common.spread(p99, 2), f"{options.connections} connections", "-")])


main()
