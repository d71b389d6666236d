"""Goal: a node whose line to the server is cut, slow, plugged or garbled loses no output, no end and no
receipt, says none of them twice, and tells nothing to a server that is not its own.

Method: a second node joins, then speaks through a proxy that spoils the line by dice from FAULT_SEED,
while jobs of known output run on it; the first node is kept busy.
"""

import os
import shutil
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from conftest import SEED
from proxy import Proxy
from world import GPUS, VISION, e2e, kill, processes, wait_until

LINES = 3000


class SecondNode:
    def __init__(self, world):
        self.world = world
        self.name = world.node + "-b"
        self.state = tempfile.mkdtemp(prefix="ringfence-faults-")
        os.chmod(self.state, 0o755)
        self.scenario = os.path.join(self.state, "scenario.json")
        with open(self.scenario, "w") as file:
            file.write(e2e.json.dumps({"gpus": [{"memory_mib": 32, "uuid": f"GPU-0000000b-0000-4000-8000-00000000000{i}"} for i in range(2)]}))
        self.process = None

    def start(self, *words):
        env = {key: value for key, value in os.environ.items() if not key.startswith("RINGFENCE_")}
        with open(os.path.join(self.state, "log"), "a") as log:
            self.process = subprocess.Popen(
                [e2e.PROGRAM, "agent", "--node-name", self.name, "--scenario", self.scenario, *words],
                env={**env, "RINGFENCE_STATE": self.state}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=60)
            self.process = None

    def is_ready(self):
        nodes = self.world.rf.json("node", "list")
        gpus = [one["state"] for one in self.world.rf.json("gpu", "list") if one["node"] == self.name]
        return any(one["name"] == self.name and one["state"] == "ready" for one in nodes) and gpus == ["free"] * 2

    def log(self):
        with open(os.path.join(self.state, "log")) as file:
            return file.read()[-4000:]

    def join(self):
        token = os.path.join(self.state, "token")
        with open(token, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(self.world.rf.json("node", "token", "create", self.name)["token"])
        self.start("--join-token", token)
        wait_until(self.is_ready, "the second node to join")
        self.stop()


@pytest.fixture(scope="module")
def line(shared):
    """(world, proxy, node): only through the proxy does the node reach the server."""
    world = shared.get()
    busy = world.rf.ok("run", *VISION, "--gpus", GPUS, "--detach", "--", "sleep", "6000").strip()
    node = SecondNode(world)
    host, port = world.rf.json("status").get("address", context_address(world)).rsplit(":", 1)
    proxy = Proxy((host, int(port)), SEED)
    try:
        node.join()
        node.start("--server", proxy.address)
        wait_until(node.is_ready, "the second node to be back")
        yield world, proxy, node
    finally:
        proxy.set("pass")
        node.stop()
        proxy.close()
        world.rf("lease", "end", busy)
        kill([pid for pid, words, _ in processes() if node.name in words])
        shutil.rmtree(node.state, ignore_errors=True)


def context_address(world):
    return e2e.json.loads((world.state / "cli" / "context.json").read_text())["server"]


def job(world):
    """Output in many pieces; in a thread, as it may take a while to come through."""
    result = {}
    script = f"for i in $(seq {LINES}); do echo line $i; done; exit 3"

    def ask():
        result["done"] = world.rf("run", *VISION, "--", "sh", "-c", script, timeout=300)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread, result


@pytest.mark.parametrize("mode", ["cut"] + [
    pytest.param(mode, marks=pytest.mark.whole) for mode in ("slow", "garble", "hole")])
def test_a_bad_line(line, mode):
    world, proxy, node = line
    wait_until(node.is_ready, "the node")
    harmed = proxy.harmed
    proxy.set(mode)
    thread, result = job(world)
    if mode == "slow":
        thread.join(timeout=240)
    else:
        wait_until(lambda: proxy.harmed >= harmed + 5 or (mode == "hole" and proxy.harmed > harmed), "harm")
        time.sleep(2)  # let it go on for a while: there is no condition for "a while"
        proxy.set("pass")
        thread.join(timeout=240)
    assert not thread.is_alive(), node.log()
    proxy.set("pass")
    done = result["done"]
    assert done.returncode == 3, (done.returncode, done.stderr, node.log())
    assert done.stdout == "".join(f"line {i}\n" for i in range(1, LINES + 1)), "output is lost, doubled or out of order"
    wait_until(node.is_ready, "its GPUs to be scrubbed and free")
    world.check_log(still_open=1)


@pytest.mark.whole
def test_a_server_that_is_not_ours(line, tmp_path):
    """Whoever answers in the server's place, with a certificate of his own, hears nothing."""
    world, proxy, node = line
    wait_until(node.is_ready, "the node")
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=ringfence", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    heard, callers = [], []
    import socket

    liar = socket.create_server(("127.0.0.1", 0))

    def listen():
        while True:
            try:
                caller, _ = liar.accept()
                callers.append(caller)
                heard.append(context.wrap_socket(caller, server_side=True).recv(4096))
            except ssl.SSLError:
                continue
            except OSError:
                if liar.fileno() < 0:
                    return

    threading.Thread(target=listen, daemon=True).start()
    right = proxy.target
    proxy.target = liar.getsockname()
    proxy.set("pass")
    wait_until(lambda: len(callers) >= 3, "the node to be fooled")
    proxy.target = right
    proxy.set("pass")
    liar.close()
    assert not any(heard), heard
    wait_until(node.is_ready, "the node to be back")
    assert world.rf.ok("run", *VISION, "--", "echo", "on") == "on\n"
    wait_until(node.is_ready, "its GPU to be scrubbed")
    world.check_log(still_open=1)
