#!/usr/bin/python3
"""The live path of telemetry: what watching costs a node, and how fast records are stored and evaluated.

The cost is the CPU time of agent and sensor while nothing but eight simulated GPUs is watched, once a second. The rate is of
batches as an agent sends them, over TLS with a node's certificate, until the server has stored every record as an
event and its rules have seen it.

    bench/telemetry.py [--seconds S] [--batches N]
"""

import argparse
import http.client
import json
import os
import pathlib
import signal
import ssl
import tempfile
import time

import common

RECORDS = 512


def sensor_of(jailer):
    for pid in map(int, pathlib.Path(f"/proc/{jailer}/task/{jailer}/children").read_text().split()):
        if b"sense" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            return pid
    raise RuntimeError("the jailer has no sensor")


class Node:
    """Speaks as the instance's node, with a spool of its own."""

    def __init__(self, ringfence, folder):
        context = json.loads((ringfence.state / "cli" / "context.json").read_text())
        credentials = json.loads((ringfence.state / "node" / "agent" / "credentials.json").read_text())
        pem = pathlib.Path(folder, "node.pem")
        pem.write_text(credentials["certificate"] + credentials["key"])
        pem.chmod(0o600)
        tls = ssl.create_default_context(cadata=context["ca_pem"])
        tls.load_cert_chain(pem)
        self.connection = http.client.HTTPSConnection(context["server"], context=tls)

    def post(self, body):
        self.connection.request("POST", "/v1/agent/telemetry", body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {text}")
        return json.loads(text)


def batch(first, gpus, now):
    records = [{"seq": first + i, "time": now, "kind": "reading", "gpu": gpus[i % len(gpus)], "samples": 60,
                "mean": {"busy_percent": 40, "power_mw": 300000, "power_limit_mw": 700000, "memory_bytes": 67108864,
                         "sm_active_percent": 40, "tensor_active_percent": 20, "pcie_rx_kbps": 90000},
                "grown": {"ecc_corrected": 0, "energy_mj": 1000}, "peak": {"memory_used_bytes": 1048576}}
               for i in range(RECORDS)]
    return json.dumps({"epoch": "bench", "records": records, "waiting": 0, "read": now, "readings": [], "blind": ""})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batches", type=int, default=200)
    options = parser.parse_args()
    common.need_root()
    with common.ringfence(RINGFENCE_SERVER_REQUESTS_PER_SECOND="1000000") as ringfence, \
            tempfile.TemporaryDirectory() as folder:
        gpus = [gpu["uuid"] for gpu in ringfence.json("gpu", "list")]
        while "reading" not in ringfence.json("gpu", "show", gpus[-1]):
            time.sleep(0.2)
        time.sleep(5)
        pids = ringfence.pids()
        watched = {"agent": pids["agent"], "sensor": sensor_of(pids["jailer"])}
        before = {name: common.cpu_seconds(pid) for name, pid in watched.items()}
        begun = time.monotonic()
        time.sleep(options.seconds)
        passed = time.monotonic() - begun
        cost = {name: (common.cpu_seconds(pid) - before[name]) / passed * 100 for name, pid in watched.items()}
        megabytes = sum(map(common.resident_mb, watched.values()))

        # The node's own agent would deliver between our batches, under another epoch.
        os.kill(pids["agent"], signal.SIGSTOP)
        node = Node(ringfence, folder)
        bodies = [batch(1 + i * RECORDS, gpus, int(time.time() * 1000)) for i in range(options.batches)]
        memory = common.resident_mb(pids["server"])
        cpu = common.cpu_seconds(pids["server"])
        begun = time.monotonic()
        for body in bodies:
            node.post(body)
        taken = time.monotonic() - begun
        while True:
            detection = json.loads(ringfence.ok("status", "-o", "json"))["detection"]
            if detection["behind"] < RECORDS:
                break
            time.sleep(0.1)
        total = time.monotonic() - begun
        cpu = common.cpu_seconds(pids["server"]) - cpu
        grown = common.resident_mb(pids["server"]) - memory
        os.kill(pids["agent"], signal.SIGCONT)
    count = options.batches * RECORDS
    common.record(
        "telemetry, live", f"bench/telemetry.py --seconds {options.seconds:g} --batches {options.batches}",
        [("a node's cost for 8 GPUs at 1 Hz", f"agent {cost['agent']:.2f}%, sensor {cost['sensor']:.2f}% of a core; "
          f"{megabytes:.0f} MB", "1% of a core", "kept" if sum(cost.values()) < 1 else "missed"),
         ("records stored durably, one connection", f"{count / taken:,.0f} a second", "50,000", "-"),
         ("records stored and evaluated", f"{count / total:,.0f} a second; server's CPU {cpu * 1e6 / count:.1f} µs each, "
          f"memory grew by {grown:.0f} MB", "50,000 a second on 2 cores",
          "kept" if count / total >= 50000 else "missed")])


if __name__ == "__main__":
    main()
