"""Goal: a box reaches a server by the DNS name that policy gives its tenant, at the rule's port, once it has asked; not
by address before, not at another port, not another name; what was denied is counted with its lease.

Method: a whole `ringfence up` inside a network namespace of its own, which plays the machine. A second one plays the
world: a resolver in Python, a web server, and the metadata service that a lying resolver points at. Nothing of the real
machine's network is touched.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from conftest import Ringfence, wait_until

IMAGING = ("-t", "globex/genomics/imaging")

RULES = """
apiVersion: ringfence.dev/v1
kind: NetworkRule
metadata: {name: imaging-reads-www}
spec:
  from: globex/genomics/imaging
  to: {name: www.world.example}
  ports: [tcp/8080]
---
apiVersion: ringfence.dev/v1
kind: NetworkRule
metadata: {name: imaging-reads-liar}
spec:
  from: globex/genomics/imaging
  to: {name: liar.world.example}
  ports: [tcp/8080]
"""

# Answers at 8080 and 9090 of every address, and for names: www is 198.51.100.2, liar the metadata service.
WORLD = """
import selectors, socket, struct
names = {b"www": "198.51.100.2", b"liar": "169.254.169.254"}
watch = selectors.DefaultSelector()
for port in (8080, 9090):
    s = socket.create_server(("0.0.0.0", port)); watch.register(s, selectors.EVENT_READ, "web")
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("198.51.100.53", 53))
watch.register(u, selectors.EVENT_READ, "dns")
print("ready", flush=True)
while True:
    for key, _ in watch.select():
        if key.data == "web":
            c, _ = key.fileobj.accept(); c.sendall(b"hello"); c.close()
            continue
        query, sender = u.recvfrom(4096)
        first = query[13:13 + query[12]].lower()
        print("asked", first.decode(), flush=True)
        record = b"\\xc0\\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(names.get(first, "192.0.2.1"))
        u.sendto(query[:2] + b"\\x81\\x80" + query[4:6] + b"\\0\\1\\0\\0\\0\\0" + query[12:] + record, sender)
"""

# A line for each step: "address:port THROUGH|denied" or "name address|error".
BOX = """
import socket, sys
for word in sys.argv[1:]:
    host, _, port = word.partition(":")
    try:
        if port:
            c = socket.socket(); c.settimeout(5); c.connect((host, int(port))); print(word, "THROUGH", flush=True)
        else:
            print(word, socket.getaddrinfo(host, 1, socket.AF_INET, socket.SOCK_STREAM)[0][4][0], flush=True)
    except OSError as error:
        print(word, "denied", flush=True)
"""


class Inside(Ringfence):
    """A Ringfence whose every process, the command line's too, is in the namespace of process `pid`."""

    def __init__(self, state, pid):
        super().__init__(state)
        self.pid = pid

    def __call__(self, *words, token=None, timeout=120, stdin=None, env=None):
        from conftest import PROGRAM
        return subprocess.run(["nsenter", "-t", str(self.pid), "-n", PROGRAM, *map(str, words)],
                              env={**self.environment(token), **(env or {})}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)


def hold_namespace():
    holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
    wait_until(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != os.readlink("/proc/self/ns/net"), "a namespace")
    return holder


def inside(pid, *words):
    subprocess.run(["nsenter", "-t", str(pid), "-n", *words], check=True)


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    machine, world = hold_namespace(), hold_namespace()
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o755)
    instance = Inside(state, machine.pid)
    log = pathlib.Path(state) / "world.log"
    server = None
    try:
        inside(machine.pid, "ip", "link", "set", "lo", "up")
        inside(machine.pid, "ip", "link", "add", "world0", "type", "veth", "peer", "name", "out0", "netns", str(world.pid))
        inside(machine.pid, "ip", "address", "add", "198.51.100.1/24", "dev", "world0")
        inside(machine.pid, "ip", "link", "set", "world0", "up")
        inside(machine.pid, "sysctl", "-qw", "net.ipv4.conf.world0.forwarding=1")
        for address in ("198.51.100.2/24", "198.51.100.53/24", "169.254.169.254/32"):
            inside(world.pid, "ip", "address", "add", address, "dev", "out0")
        inside(world.pid, "ip", "link", "set", "out0", "up")
        inside(world.pid, "ip", "link", "set", "lo", "up")
        with log.open("w") as out:
            server = subprocess.Popen(["nsenter", "-t", str(world.pid), "-n", sys.executable, "-c", WORLD], stdout=out)
        wait_until(lambda: "ready" in log.read_text(), "the world")
        settings = {"RINGFENCE_UPLINK": "world0", "RINGFENCE_RESOLVERS": "198.51.100.53"}
        instance.ok("up", "--detach", "--listen", "127.0.0.1:0", env=settings)
        if any(one["missing"] for one in instance.json("node", "list")):
            pytest.skip("this machine cannot run boxes")
        (pathlib.Path(state) / "policy" / "names.yaml").write_text(RULES)
        instance.ok("policy", "reload")
        instance.asked = lambda: [line.split()[1] for line in log.read_text().splitlines() if line.startswith("asked")]
        yield instance
    finally:
        instance("down")
        for process in (server, machine, world):
            if process:
                process.kill()
                process.wait()
        shutil.rmtree(state, ignore_errors=True)


def run(node, *steps):
    """The lease, and what each step said."""
    done = node("run", *IMAGING, "--", "python3", "-c", BOX, *steps)
    said = [line.rsplit(" ", 1)[1] for line in done.stdout.splitlines()]
    assert len(said) == len(steps), done.stdout + done.stderr + node.logs()
    return node.json("lease", "list", "--all", "--limit", "1")[0]["id"], said


def test_by_its_name_at_its_port_and_nothing_else(node):
    lease, said = run(node, "198.51.100.2:8080", "www.world.example", "198.51.100.2:8080", "198.51.100.2:9090",
                      "other.world.example", "198.51.100.53:8080", "198.51.100.1:22")
    assert said == ["denied", "198.51.100.2", "THROUGH", "denied", "denied", "denied", "denied"], said
    node.ok("lease", "show", "--wait", lease)
    denied = node.json("lease", "show", lease)["denied"]
    seen = {(flow["to"], flow["port"]) for flow in denied["flows"]}
    assert {("198.51.100.2", 8080), ("198.51.100.2", 9090), ("198.51.100.53", 8080)} <= seen, denied
    assert "other" not in node.asked(), "a name that the grant does not have left the node"


def test_what_one_box_asked_is_not_open_to_the_next(node):
    _, said = run(node, "www.world.example", "198.51.100.2:8080")
    assert said == ["198.51.100.2", "THROUGH"]
    _, said = run(node, "198.51.100.2:8080")
    assert said == ["denied"]


def test_a_resolver_that_lies_opens_nothing(node):
    _, said = run(node, "liar.world.example", "169.254.169.254:8080")
    assert said == ["denied", "denied"]
    assert "liar" in node.asked()
    log = wait_until(lambda: [line for line in node.logs().splitlines() if "name_not_opened" in line], "the jailer's log")
    assert "169.254.169.254" in log[0] and "liar.world.example" in log[0], log


def test_another_tenant_has_no_resolver(node):
    done = node("run", "-t", "globex/genomics/folding", "--", "python3", "-c", BOX, "www.world.example")
    assert done.stdout.split()[-1] == "denied", done.stdout + done.stderr
