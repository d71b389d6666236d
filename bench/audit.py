#!/usr/bin/python3
"""Durable audit entries: 64 at once against one by one, on the same disk in the same run.

Twice: at the store, where 64 threads append; and through the whole server, where 64 connections each
send a request that policy denies, which is on record, durably, before its answer goes out. While that
goes on, the time from an acknowledged entry to a signed checkpoint that covers it is sampled.

    bench/audit.py [--rounds N] [--seconds S] [--writers N]
"""

import argparse
import http.client
import json
import os
import ssl
import statistics
import subprocess
import tempfile
import threading
import time

import common


class Api:
    """One connection to the API, kept alive."""

    def __init__(self, ringfence):
        context = json.loads((ringfence.state / "cli" / "context.json").read_text())
        tls = ssl.create_default_context(cadata=context["ca_pem"])
        self.token = context["token"]
        self.connection = http.client.HTTPSConnection(context["server"], context=tls, timeout=60)

    def get(self, target):
        self.connection.request("GET", target, headers={"Authorization": f"Bearer {self.token}"})
        return json.loads(self.connection.getresponse().read())


class LagWatch(threading.Thread):
    """Samples, until stopped, how long entries that are acknowledged now take to be under a checkpoint."""

    def __init__(self, ringfence):
        super().__init__()
        self.api = Api(ringfence)
        self.done = threading.Event()
        self.lags = []
        self.start()

    def run(self):
        while not self.done.is_set():
            start = time.monotonic()
            wanted = self.api.get("/v1/status")["audit"]["entries"]
            while self.api.get("/v1/status")["audit"]["proven"] < wanted:
                time.sleep(0.005)
            self.lags.append((time.monotonic() - start) * 1000)

    def stop(self):
        self.done.set()
        self.join()
        return self.lags


def at_the_store(folder, options):
    done = subprocess.run([common.BUILD / "bench" / "commits", f"{folder}/store", "--rounds", str(options.rounds),
                           "--seconds", str(options.seconds), "--writers", str(options.writers)],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def through_the_server(options):
    """Reports of the load generator, the one-by-one rates measured between them, and the lags."""
    reports, ones, lags = [], [], []
    with common.ringfence(RINGFENCE_SERVER_REQUESTS_PER_SECOND="1000000") as ringfence:
        for index in range(options.rounds):
            folder = ringfence.state / f"one-{index}"  # the same disk
            alone = subprocess.run([common.BUILD / "bench" / "commits", folder, "--rounds", "1", "--writers", "1",
                                    "--seconds", str(options.seconds)], stdout=subprocess.PIPE, text=True, check=True)
            ones.append(json.loads(alone.stdout)[0]["one"]["per_second"])
            watch = LagWatch(ringfence)
            reports.append(ringfence.load("--mix", "denied", "--rate", "max", "--connections", options.writers,
                                          "--seconds", options.seconds)[0])
            lags += watch.stop()
            assert set(reports[-1]["ops"][0]["statuses"]) == {"403"}, reports[-1]
        ringfence.ok("audit", "verify")
    return reports, ones, lags


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--writers", type=int, default=64)
    options = parser.parse_args()
    common.need_root()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        store = at_the_store(folder, options)
    reports, ones, lags = through_the_server(options)

    store_ratios = [one["many"]["per_second"] / one["one"]["per_second"] for one in store]
    store_p99 = [one["many"]["p99_us"] / 1000 for one in store]
    rates = [report["per_second"] for report in reports]
    ratios = [a / b for a, b in zip(rates, ones)]
    p99 = [report["ops"][0]["latency"]["p99_us"] / 1000 for report in reports]
    lags.sort()
    common.record(
        "durable audit entries",
        f"bench/audit.py --rounds {options.rounds} --seconds {options.seconds:g} --writers {options.writers}",
        [(f"{options.writers} writers at the store, entries a second", common.spread([one["many"]["per_second"] for one in store], 0),
          "one by one on SQLite WAL/FULL: " + common.spread([one["one"]["per_second"] for one in store], 0) +
          f"; ratio {common.spread(store_ratios)}",
          common.verdict(statistics.median(store_ratios) >= 20, "20 times one by one"), "store"),
         ("its p99 acknowledgement, ms", common.spread(store_p99),
          "write and fdatasync of a page: median " + common.spread([one["sync"]["p50_us"] / 1000 for one in store]) +
          ", p99 " + common.spread([one["sync"]["p99_us"] / 1000 for one in store]),
          common.verdict(statistics.median(store_p99) < 10, "under 10 ms"), "store-p99"),
         (f"{options.writers} connections through the server, entries a second", common.spread(rates, 0),
          f"one by one: {common.spread(ones, 0)}; ratio {common.spread(ratios)}",
          common.verdict(statistics.median(ratios) >= 20, "20 times one by one"), "server"),
         ("its p99 acknowledgement, ms", common.spread(p99), "closed loop, TLS, policy and log included",
          common.verdict(statistics.median(p99) < 10, "under 10 ms"), "server-p99"),
         ("acknowledged to under a checkpoint, meanwhile, ms: median, p99, most",
          f"{statistics.median(lags):.0f}, {lags[int(len(lags) * 0.99)]:.0f}, {lags[-1]:.0f} of {len(lags)} samples", "-",
          common.verdict(lags[-1] <= 1000, "within 1 s"), "checkpoint")])


main()
