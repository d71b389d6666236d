"""Goal: between boxes, node, server and the world nothing passes but what the policy names, and what was denied is
shown with its lease.

Method: attacks from inside real boxes of tenants with and without rules, each beside its control: the one flow that
the sample policy opens (imaging may call folding at tcp/8080). Nothing leaves this machine: no uplink is set.
"""

import json
import pathlib
import re
import socket
import subprocess

import pytest

from conftest import PROGRAM, wait_until

IMAGING = ("-t", "globex/genomics/imaging")
FOLDING = ("-t", "globex/genomics/folding")
VISION = ("-t", "acme/research/vision")

# Says its address and answers at 8080 and 9090.
SERVER = """
import selectors, socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("192.0.2.1", 9))
watch = selectors.DefaultSelector()
for port in (8080, 9090):
    s = socket.create_server(("0.0.0.0", port)); watch.register(s, selectors.EVENT_READ)
print("address", u.getsockname()[0], flush=True)
while True:
    for key, _ in watch.select():
        c, _ = key.fileobj.accept(); c.sendall(b"hello"); c.close()
"""

# One line for each target: through or not.
ATTACKER = """
import json, socket, sys
for name, family, host, port in json.loads(sys.argv[1]):
    try:
        c = socket.socket(family, socket.SOCK_STREAM); c.settimeout(4); c.connect((host, port))
        print(name, "THROUGH", flush=True)
    except OSError as error:
        print(name, "denied", flush=True)
for kind, make in (("raw", (socket.AF_INET, socket.SOCK_RAW, 255)), ("packet", (17, socket.SOCK_RAW, 768)),
                   ("raw six", (socket.AF_INET6, socket.SOCK_RAW, 58)), ("vsock", (40, socket.SOCK_STREAM, 0))):
    try:
        socket.socket(*make); print(kind, "THROUGH")
    except OSError:
        print(kind, "denied")
"""


def addresses_of_this_machine():
    """Every IPv4 address that the kernel calls its own."""
    text = pathlib.Path("/proc/net/fib_trie").read_text()
    found = re.findall(r"\|-- ([0-9.]+)\n\s+/32 host LOCAL", text)
    return sorted({address for address in found if not address.startswith("127.")})


def attack(ringfence, tenant, targets):
    """The lease, and what each target said."""
    done = ringfence("run", *tenant, "--", "python3", "-c", ATTACKER, json.dumps(targets))
    said = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert set(said) >= {target[0] for target in targets}, done.stdout + done.stderr
    lease = ringfence.json("lease", "list", "--all", "--limit", "1")[0]
    return lease["id"], said


@pytest.fixture(scope="module")
def victim(ringfence):
    """The address of a box that listens."""
    lease = ringfence.ok("run", *FOLDING, "--detach", "--", "python3", "-c", SERVER).strip()
    line = wait_until(lambda: ringfence.ok("lease", "logs", lease) or None, "the victim's address")
    yield line.split()[1]
    ringfence.ok("lease", "end", lease)


def test_everything_but_the_named_flow_is_denied(ringfence, victim):
    here = addresses_of_this_machine()
    router = ".".join([*victim.split(".")[:3], str(int(victim.split(".")[3]) - 1)])
    with socket.create_server(("0.0.0.0", 0)) as listening:
        port = listening.getsockname()[1]
        targets = [["named", 2, victim, 8080], ["other port", 2, victim, 9090], ["router", 2, router, 22],
                   ["metadata", 2, "169.254.169.254", 80], ["loopback", 2, "127.0.0.1", port],
                   ["six loopback", 10, "::1", port], ["six world", 10, "2001:db8::1", 443],
                   ["six all nodes", 10, "ff02::1%eth0", 443], ["world", 2, "192.0.2.7", 443]]
        targets += [[f"host {address}", 2, address, port] for address in here]
        lease, said = attack(ringfence, IMAGING, targets)
    assert said.pop("named") == "THROUGH", said
    assert set(said.values()) == {"denied"}, said
    ringfence.ok("lease", "show", "--wait", lease)
    denied = ringfence.json("lease", "show", lease)["denied"]
    seen = {(flow["to"], flow["port"]) for flow in denied["flows"]}
    assert {(victim, 9090), ("169.254.169.254", 80)} <= seen, denied
    assert denied["packets"] >= len(denied["flows"])
    assert "169.254.169.254" in ringfence.ok("lease", "show", lease)


def test_the_audit_log_says_how_many(ringfence, victim):
    lease, said = attack(ringfence, IMAGING, [["other port", 2, victim, 9090]])
    assert said["other port"] == "denied"
    lines = ringfence.ok("audit", "tail", "--limit", "200", "--output", "json").splitlines()
    entries = [line for line in lines if lease in line and "denied_packets" in line]
    assert entries, "no lease.job_end with denied_packets"


def test_the_answering_side_cannot_begin(ringfence, victim):
    """The rule is one way: a second box of the callee's tenant reaches nobody, not even its own tenant."""
    _, said = attack(ringfence, FOLDING, [["sibling", 2, victim, 8080]])
    assert said["sibling"] == "denied"


def test_a_tenant_without_a_rule_has_no_interface(ringfence, victim):
    assert ringfence.ok("run", *VISION, "--", "ls", "/sys/class/net") == "lo\n"
    _, said = attack(ringfence, VISION, [["neighbour", 2, victim, 8080], ["metadata", 2, "169.254.169.254", 80]])
    assert set(said.values()) == {"denied"}, said


def test_export_is_yaml_that_others_read(ringfence, tmp_path):
    yaml = pytest.importorskip("yaml")
    folder = ringfence.state / "policy"
    for form, kind in (("k8s", "NetworkPolicy"), ("calico", "NetworkPolicy"), ("cilium", "CiliumNetworkPolicy")):
        done = subprocess.run([PROGRAM, "network", "export", "--to", form, "--namespace", "jobs", folder],
                              capture_output=True, text=True, check=True)
        objects = list(yaml.safe_load_all(done.stdout))
        assert [o["kind"] for o in objects] == [kind] * 3, done.stdout
        assert {o["metadata"]["namespace"] for o in objects} == {"jobs"}
        spec = objects[1]["spec"]
        assert "8080" in json.dumps(spec) and "folding" in json.dumps(spec) and "imaging" in json.dumps(spec)


def test_check_says_which_rule(ringfence):
    folder = str(ringfence.state / "policy")
    words = ("network", "check", "--from", "globex/genomics/imaging", "--to", "globex/genomics/folding", "--port")
    done = ringfence(*words, "tcp/8080", folder)
    assert done.returncode == 0 and "imaging-calls-folding (network.yaml:" in done.stdout, done.stdout
    done = ringfence(*words, "tcp/22", folder)
    assert done.returncode == 3 and done.stdout.startswith("closed"), done.stdout
