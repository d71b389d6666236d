"""Goal: a box shares the host's network only by an exception of the policy, which two people made, for its tenant and
in its time; each use is in the audit log, and status says that it is in force.

Method: a running instance; the same job without, with, and with the wrong exception.
"""

import datetime
import json
import os


VISION = ("-t", "acme/research/vision")
EXCEPTION = """
apiVersion: ringfence.dev/v1
kind: Exception
metadata: {{name: fabric-debug}}
spec:
  tenant: acme/research
  what: [host_network]
  reason: a tool of the vendor speaks to its daemon over the loopback
  requestedBy: {0}
  approvedBy: {1}
  from: {2}
  until: {3}
"""


def day(offset):
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=offset)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def put(ringfence, *values):
    (ringfence.state / "policy" / "exceptions.yaml").write_text(EXCEPTION.format(*values))
    return ringfence("policy", "reload")


def people(ringfence):
    return [line.split("name:")[1].strip() for line in
            (ringfence.state / "policy" / "principals.yaml").read_text().splitlines() if "name:" in line
            and "display" not in line]


def network_of(ringfence, *options):
    return ringfence("run", *VISION, *options, "--", "readlink", "/proc/self/ns/net")


def test_only_by_an_exception_in_force(ringfence):
    own = os.readlink("/proc/self/ns/net") + "\n"
    done = network_of(ringfence, "--exception", "fabric-debug")
    assert done.returncode != 0 and "no exception" in done.stderr, done.stderr
    users = [name for name in people(ringfence) if "@" in name][:2]
    assert put(ringfence, users[0], users[0], day(-1), day(1)).returncode != 0, "one person alone"
    assert put(ringfence, users[0], users[1], day(-1), day(40)).returncode != 0, "for too long"
    assert put(ringfence, users[0], users[1], day(-2), day(-1)).returncode == 0
    done = network_of(ringfence, "--exception", "fabric-debug")
    assert done.returncode != 0 and "holds from" in done.stderr, done.stderr

    assert put(ringfence, users[0], users[1], day(-1), day(1)).returncode == 0
    assert network_of(ringfence).stdout not in ("", own)
    assert network_of(ringfence, "--exception", "fabric-debug").stdout == own
    done = ringfence("run", "-t", "globex/genomics/imaging", "--exception", "fabric-debug", "--", "true")
    assert done.returncode != 0 and "is for acme/research" in done.stderr, done.stderr

    lines = ringfence.ok("audit", "tail", "--limit", "200", "--output", "json").splitlines()
    uses = [json.loads(line) for line in lines if "exception.use" in line]
    assert len(uses) == 1 and users[1] in json.dumps(uses[0]), uses
    assert any("fabric-debug" in one for one in ringfence.json_any("status")["exceptions"])
    assert "fabric-debug" in ringfence("status").stdout
    folder = ringfence.state / "policy"
    assert "fabric-debug" in ringfence("policy", "check", folder).stderr


def test_devices_of_a_fabric_need_a_rule(ringfence):
    done = ringfence("run", *VISION, "--device", "rdma", "--", "true")
    assert done.returncode != 0 and "no BoxRule" in done.stderr, done.stderr
    (ringfence.state / "policy" / "fabric.yaml").write_text(
        "apiVersion: ringfence.dev/v1\nkind: BoxRule\nmetadata: {name: vision-fabric}\n"
        "spec: {tenant: acme/research/vision, devices: [rdma]}\n")
    ringfence.ok("policy", "reload")
    done = ringfence("run", *VISION, "--device", "rdma", "--", "true")
    assert done.returncode != 0 and "no RDMA adapter" in done.stdout + done.stderr, done.stderr
    done = ringfence("run", *VISION, "--device", "sda", "--", "true")
    assert done.returncode != 0 and "rdma and imex" in done.stderr, done.stderr
