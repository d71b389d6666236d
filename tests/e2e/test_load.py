"""Goal: a server that is flooded refuses what is too much, says when to come back, and goes on serving
everybody else; slow and silent clients are cut; nothing grows without bound.

Method: a Ringfence of its own with a low rate limit, flooded by the load generator at several times of it,
from an address of its own (127.0.0.x); others ask from 127.0.0.1 meanwhile. Counts are compared, never times.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile

import pytest

from conftest import BUILD, Ringfence, wait_until

LOAD = BUILD / "bench" / "load"
LIMIT = 200  # requests a second from one address


@pytest.fixture(scope="module")
def limited():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o755)
    instance = Ringfence(state)
    done = instance("up", "--detach", "--listen", "127.0.0.1:0",
                    env={"RINGFENCE_SERVER_REQUESTS_PER_SECOND": str(LIMIT)})
    assert done.returncode == 0, done.stderr + instance.logs()
    yield instance
    instance("down")
    shutil.rmtree(state, ignore_errors=True)


def context_of(ringfence):
    return json.loads((ringfence.state / "cli" / "context.json").read_text())


class Client:
    """A TLS connection from an address of our choice, byte by byte."""

    def __init__(self, ringfence, source="127.0.0.1"):
        context = context_of(ringfence)
        host, port = context["server"].rsplit(":", 1)
        self.token = context["token"]
        self.plain = socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))
        self.tls = ssl.create_default_context(cadata=context["ca_pem"]).wrap_socket(self.plain, server_hostname=host)

    def send(self, data):
        self.tls.sendall(data.encode())

    def ask(self, target, token=True):
        """Status and headers of the answer; None when the server closed the connection."""
        auth = f"Authorization: Bearer {self.token}\r\n" if token else ""
        self.send(f"GET {target} HTTP/1.1\r\nHost: a\r\n{auth}\r\n")
        return self.answer()

    def answer(self):
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.tls.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        left = int(headers.get("content-length", 0)) - len(body)
        while left > 0:
            left -= len(self.tls.recv(65536))
        return int(lines[0].split()[1]), headers

    def is_closed_by_server(self):
        try:
            return self.tls.recv(1) == b""
        except (ConnectionError, ssl.SSLError):
            return True

    def close(self):
        with contextlib.suppress(OSError):
            self.tls.close()


def server_pid(ringfence):
    [pid] = ringfence.pid_of("ringfence", "server")
    return pid


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def connections(pid):
    def link(number):
        try:
            return os.readlink(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:
            return ""
    return sum(link(number).startswith("socket:") for number in os.listdir(f"/proc/{pid}/fd"))


def resident_kb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def flood(ringfence, *words):
    done = subprocess.run([LOAD, "--state", ringfence.state, "-o", "json", *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    [report] = json.loads(done.stdout)
    return done.returncode, report


def test_too_much_is_refused_with_a_word_on_when_to_come_back(limited):
    code, report = flood(limited, "--mix", "read=8,denied=2", "--rate", 5 * LIMIT, "--seconds", 3, "--warmup", 0,
                         "--connections", 32)
    assert code == 0, report  # every request was answered, and every refusal had Retry-After
    answered = sum(op["latency"]["count"] for op in report["ops"])
    refused = sum(op["refused"]["count"] for op in report["ops"])
    assert answered >= LIMIT and refused > answered, report
    assert all(set(op["statuses"]) <= {"200", "403", "429"} for op in report["ops"]), report
    assert report["cut"] == 0 and report["unsent"] == 0, report


def test_a_flood_from_one_address_leaves_the_others_alone(limited):
    flooder = subprocess.Popen([LOAD, "--state", limited.state, "-o", "json", "--mix", "read,denied,list", "--rate",
                                str(10 * LIMIT), "--seconds", "6", "--warmup", "0", "--connections", "64"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    other = Client(limited, "127.0.0.77")
    asked = 0
    try:
        while flooder.poll() is None and asked < LIMIT // 2:  # well below its own limit
            status, _ = other.ask(["/healthz", "/readyz", "/v1/status", "/v1/leases"][asked % 4])
            assert status == 200
            asked += 1
    finally:
        report = json.loads(flooder.communicate(timeout=60)[0])[0]
        other.close()
    assert asked > 20
    assert sum(op["refused"]["count"] for op in report["ops"]) > LIMIT, report


def test_connections_of_one_address_lock_nobody_out_not_even_there(limited):
    files = open_files(server_pid(limited))
    held = []
    try:
        for _ in range(300):  # more than one address may have
            held.append(Client(limited, "127.0.0.78"))
        same = Client(limited, "127.0.0.78")
        status, _ = wait_until(lambda: same.ask("/healthz"), "an answer")
        assert status in (200, 429)
        other = Client(limited, "127.0.0.79")
        assert other.ask("/v1/status")[0] == 200
        assert open_files(server_pid(limited)) <= files + 256 + 8
        same.close()
        other.close()
    finally:
        for client in held:
            client.close()
    wait_until(lambda: open_files(server_pid(limited)) <= files + 8, "its files to be closed again")


def test_slow_and_silent_clients_are_cut_and_harm_nobody(limited):
    files = open_files(server_pid(limited))
    slow = []
    for number in range(60):
        client = Client(limited, f"127.0.0.{100 + number % 4}")
        slow.append(client)
        if number % 4 == 0:
            pass  # says nothing at all
        elif number % 4 == 1:
            client.send("GET /v1/leases HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        elif number % 4 == 2:
            client.send(f"POST /v1/leases HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {client.token}\r\n"
                        "Content-Length: 100000\r\n\r\n{")
        else:  # asks for much and reads nothing
            for _ in range(20):
                with contextlib.suppress(OSError):
                    client.send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    other = Client(limited, "127.0.0.77")
    for _ in range(20):
        assert other.ask("/v1/status")[0] == 200
    # Half a head is cut after 10 s; that it is, and not when, is what counts.
    assert all(client.is_closed_by_server() for client in slow[1::4])
    assert other.ask("/healthz")[0] == 200
    for client in [*slow, other]:
        client.close()
    wait_until(lambda: open_files(server_pid(limited)) <= files + 8, "its files to be closed again")


def test_long_polls_are_answered_and_leave_nothing_behind(limited):
    lease = limited.ok("run", "-t", "acme/research/vision", "--detach", "--", "sleep", "600").strip()
    wait_until(lambda: limited.json("lease", "show", lease)["state"] == "active", "the job")
    pid = server_pid(limited)
    before = connections(pid)
    for _ in range(4):  # clients that ask to wait, and go
        gone = [Client(limited, f"127.0.0.{120 + number}") for number in range(40)]
        for client in gone:
            client.send(f"GET /v1/leases/{lease}?state=active&wait_ms=20000 HTTP/1.1\r\nHost: a\r\n"
                        f"Authorization: Bearer {client.token}\r\n\r\n")
        for client in gone:
            client.close()
    waiting = Client(limited, "127.0.0.77")
    waiting.send(f"GET /v1/leases/{lease}?state=active&wait_ms=20000 HTTP/1.1\r\nHost: a\r\n"
                 f"Authorization: Bearer {waiting.token}\r\n\r\n")
    limited.ok("lease", "end", lease)
    assert waiting.answer()[0] == 200
    waiting.close()
    wait_until(lambda: connections(pid) <= before + 8, "its connections to be closed again")


def test_a_second_flood_takes_no_more_memory_than_the_first(limited):
    words = ("--mix", "read=4,list=2,status=2,denied=1,audit=1", "--rate", 10 * LIMIT, "--seconds", 4, "--warmup", 0,
             "--connections", 100)
    pid = server_pid(limited)
    flood(limited, *words)
    flood(limited, *words)
    first, files = resident_kb(pid), open_files(pid)
    for _ in range(2):
        flood(limited, *words)
    assert resident_kb(pid) < first + 16 * 1024, (first, resident_kb(pid))
    wait_until(lambda: open_files(pid) <= files + 8, "its files to be closed again")
    assert limited("audit", "verify").returncode == 0
    assert limited("status").returncode == 0
