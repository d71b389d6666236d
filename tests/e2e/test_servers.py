"""Several servers on one PostgreSQL: any of them serves any request, one at a time publishes the log,
and there is one log whatever happens to whom."""

import collections
import json
import os
import pathlib
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest
from conftest import PROGRAM, ROOT, Ringfence, wait_until
from postgres import Postgres

USER = 64321  # any account without rights will do


class Line:
    """A socket between one server and its database, that can be severed without either end noticing."""

    def __init__(self, target):
        self.folder = tempfile.mkdtemp(prefix="ringfence-line-")
        os.chmod(self.folder, 0o755)
        self.target = next(str(path) for path in pathlib.Path(target).glob(".s.PGSQL.*") if not path.name.endswith(".lock"))
        self.severed = threading.Event()
        self.stopping = threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, os.path.basename(self.target)))
        os.chmod(self.listener.getsockname(), 0o777)
        self.listener.listen(64)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        selector = selectors.DefaultSelector()
        selector.register(self.listener, selectors.EVENT_READ, None)
        while not self.stopping.is_set():
            if self.severed.is_set():
                time.sleep(0.02)  # what is sent stays where it is: nobody is told that the line is cut
                continue
            for key, _ in selector.select(0.05):
                if self.severed.is_set():
                    break
                if key.data is None:
                    near, _ = self.listener.accept()
                    far = socket.socket(socket.AF_UNIX)
                    try:
                        far.connect(self.target)
                    except OSError:  # the database is down, which is its own test
                        near.close()
                        continue
                    selector.register(near, selectors.EVENT_READ, far)
                    selector.register(far, selectors.EVENT_READ, near)
                    continue
                try:
                    data = key.fileobj.recv(65536)
                    if data:
                        key.data.sendall(data)
                        continue
                except OSError:
                    pass
                for end in (key.fileobj, key.data):
                    try:
                        selector.unregister(end)
                    except (KeyError, ValueError):
                        pass
                    end.close()

    def close(self):
        self.stopping.set()
        self.thread.join()
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Server:
    """`ringfence server` as an operator runs it, with a state folder of its own."""

    def __init__(self, url, keys=None, schema=None):
        self.schema = schema  # the newest that it knows, as an older version does
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-server-"))
        os.chmod(self.state, 0o755)
        (self.state / "server").mkdir()
        shutil.copytree(ROOT / "content" / "sample-policy", self.state / "policy")
        if keys is not None:
            shutil.copytree(keys, self.state / "server" / "keys")
        for path in [self.state, *self.state.rglob("*")]:
            os.chown(path, USER, USER)
        self.url = url
        self.process = None
        self.address = ""
        self.listen = "127.0.0.1:0"

    def start(self):
        env = {
            "PATH": os.environ["PATH"],
            "RINGFENCE_STATE": str(self.state),
            "RINGFENCE_DATABASE": self.url,
            "RINGFENCE_LISTEN": self.listen,
            "RINGFENCE_UP_LOCAL_FILE": str(self.state / "local.json"),
        }
        if self.schema is not None:
            env["RINGFENCE_TEST_SCHEMA"] = str(self.schema)
        local = self.state / "local.json"
        local.unlink(missing_ok=True)
        with open(self.state / "log", "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "server"], env=env, user=USER, group=USER, extra_groups=[],
                cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        wait_until(lambda: local.exists() or self.process.poll() is not None, "the server to start", 90)
        assert self.process.poll() is None, (self.state / "log").read_text()[-3000:]
        facts = json.loads(local.read_text())
        self.address = self.listen = facts["server"]
        return facts

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(timeout=60)

    @property
    def keys(self):
        return self.state / "server" / "keys"

    @property
    def log(self):
        return self.state / "server" / "log"


class Fleet:
    """Three servers, of which one reaches the database over a line that can be severed."""

    def __init__(self, schema=None):
        self.postgres = Postgres()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-fleet-"))
        self.servers = []
        self.line = None
        first = Server(self.postgres.url, schema=schema)
        facts = first.start()
        self.servers.append(first)
        self.line = Line(self.postgres.folder)
        second = Server(self.postgres.url, first.keys, schema)
        third = Server(self.postgres.url.replace(self.postgres.folder, self.line.folder), first.keys, schema)
        assert third.url != second.url
        for server in (second, third):
            server.start()
            self.servers.append(server)
        (self.folder / "ca.pem").write_text(facts["ca_pem"])
        self.token = facts["token"]
        self.vkey = facts["log_vkey"]

    def at(self, *servers):
        """The command line, signed in as administrator, at these servers (default: all)."""
        client = Ringfence(self.folder)
        addresses = ",".join(server.address for server in servers or self.servers)
        base = client.environment()
        client.environment = lambda token=None: {
            **base, "RINGFENCE_SERVER": addresses, "RINGFENCE_CA": str(self.folder / "ca.pem"),
            "RINGFENCE_TOKEN": token or self.token,
        }
        return client

    def publisher(self, among=None):
        for server in among or self.servers:
            if server.process.poll() is not None:
                continue
            done = self.at(server)("status", "--output", "json", timeout=30)
            if done.stdout and json.loads(done.stdout).get("audit", {}).get("published_here"):
                return server
        return None

    def checkpoint(self, server):
        return self.at(server).ok("audit", "checkpoint")

    def close(self):
        for server in self.servers:
            server.stop()
        if self.line is not None:
            self.line.close()
        self.postgres.stop()
        for folder in (self.folder, *(server.state for server in self.servers)):
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def fleet():
    if os.geteuid() != 0:
        pytest.skip("starts servers and a database as other users: run the tests as root")
    made = Fleet()
    yield made
    made.close()


def size_of(note):
    return int(note.splitlines()[1])


def settle(fleet):
    """Waits until every server has built the log up to the published checkpoint, and all entries are in it."""

    def same():
        size = int(fleet.postgres.sql("SELECT count(*) FROM audit"))
        notes = {tuple((server.log / "checkpoint").read_text().splitlines()[:3]) for server in fleet.servers}
        return len(notes) == 1 and int(notes.pop()[1]) == size

    wait_until(same, "the servers to agree", 90)


def verify(fleet, server, *more):
    """The log in a server's own folder, by the verifier that shares no code with it."""
    return fleet.at(server)("audit", "verify", "--log", server.log, "--key", fleet.vkey, *more)


class Load:
    """People who make tokens at whichever server answers, and remember which they were given."""

    def __init__(self, fleet, servers, people=4):
        self.fleet, self.servers = fleet, servers
        self.acknowledged, self.stopping = [], threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(i,)) for i in range(people)]
        for thread in self.threads:
            thread.start()

    def _work(self, number):
        turn = number
        while not self.stopping.is_set():
            turn += 1
            servers = self.servers[turn % len(self.servers):] + self.servers[:turn % len(self.servers)]
            done = self.fleet.at(*servers)("token", "create", "--as", "alice@acme.example", "--output", "json", timeout=90)
            if done.returncode == 0:
                self.acknowledged.append(json.loads(done.stdout)["id"])

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def expect_once(fleet, tokens):
    """Each token that was acknowledged is in the log, and once."""
    entries = fleet.postgres.sql("SELECT convert_from(entry, 'UTF8') FROM audit WHERE action = 'token.create'")
    made = collections.Counter(json.loads(line)["detail"]["token"] for line in entries.splitlines())
    assert {token: made[token] for token in tokens if made[token] != 1} == {}


def test_any_server_serves_any_request(fleet):
    a, b, c = fleet.servers
    token = fleet.at(a).json("token", "create", "--as", "alice@acme.example")["token"]
    assert fleet.at(b).json("whoami", token=token)["principal"] == "alice@acme.example"
    assert fleet.at(c).json("whoami", token=token)["principal"] == "alice@acme.example"
    identity = fleet.at(c).json("token", "list")
    fleet.at(b).ok("token", "revoke", next(one["id"] for one in identity if one["principal"] == "alice@acme.example"))
    assert fleet.at(a)("whoami", token=token).returncode != 0
    assert fleet.publisher() is a, "the first one took the turn and keeps it"
    settle(fleet)


def test_a_policy_applied_at_one_is_in_force_at_all(fleet):
    a, b, c = fleet.servers
    files = sorted((a.state / "policy").glob("*.yaml"))
    sample = next(path for path in files if "kind: Principal" in path.read_text())
    block = next(part for part in sample.read_text().split("---") if "kind: Principal" in part)
    name = next(line for line in block.splitlines() if "name:" in line).split("name:")[1].strip()
    (b.state / "policy" / "more.yaml").write_text(block.replace(name, "newcomer@acme.example"))
    os.chown(b.state / "policy" / "more.yaml", USER, USER)
    applied = fleet.at(b).json("policy", "reload")["digest"]
    for server in (a, c):
        wait_until(lambda: fleet.at(server).json("policy", "show")["digest"] == applied, "the policy")
    # A server whose folder is behind does not bring the old policy back.
    c.stop()
    c.start()
    assert fleet.at(c).json("policy", "show")["digest"] == applied
    # Nor does one that starts after another policy was applied, and rolled back at yet another server.
    other = fleet.at(a).json("policy", "apply", a.state / "policy")
    assert other["changed"] and other["digest"] != applied
    wait_until(lambda: fleet.at(c).json("policy", "show")["version"] == other["version"], "the applied policy")
    back = fleet.at(c).json("policy", "rollback")
    assert back["digest"] == applied and back["version"] == other["version"] + 1
    for server in (a, b):
        wait_until(lambda: fleet.at(server).json("policy", "show")["version"] == back["version"], "the policy of before")
        assert fleet.at(server).json("policy", "show")["digest"] == applied


def test_another_takes_over_when_the_publisher_is_killed_under_load(fleet):
    settle(fleet)
    victim = wait_until(fleet.publisher, "a publisher")
    others = [server for server in fleet.servers if server is not victim]
    load = Load(fleet, fleet.servers)
    try:
        wait_until(lambda: len(load.acknowledged) > 5, "load")
        before = size_of(fleet.checkpoint(others[0]))
        victim.kill()
        wait_until(lambda: fleet.publisher() in others, "another publisher", 60)
        wait_until(lambda: size_of(fleet.checkpoint(others[1])) > before + 5, "the log to grow")
    finally:
        load.stop()
    victim.start()
    settle(fleet)
    expect_once(fleet, load.acknowledged)
    for server in fleet.servers:
        done = verify(fleet, server)
        assert done.returncode == 0, done.stdout + done.stderr


def test_severed_while_it_leads_it_forks_nothing(fleet):
    a, b, c = fleet.servers
    # Have the one behind the line lead: the others give the turn up as they stop.
    for server in (a, b):
        server.stop()
    wait_until(lambda: fleet.publisher() is c, "the one behind the line to lead", 60)
    for server in (a, b):
        server.start()
    settle(fleet)
    load = Load(fleet, [a, b])
    seen = []
    try:
        wait_until(lambda: len(load.acknowledged) > 3, "load")
        fleet.line.severed.set()
        wait_until(lambda: fleet.publisher([a, b]), "another publisher", 60)
        count = len(load.acknowledged)
        wait_until(lambda: len(load.acknowledged) > count + 3, "work to go on")
        seen.append(fleet.checkpoint(a))
        fleet.line.severed.clear()
        wait_until(lambda: size_of(fleet.checkpoint(c)) >= size_of(seen[0]), "it to follow", 90)
    finally:
        fleet.line.severed.clear()
        load.stop()
    seen += [fleet.checkpoint(server) for server in (a, b, c)]
    settle(fleet)
    # Every checkpoint that anybody was shown is a part of the one log, in every folder.
    for number, note in enumerate(seen):
        path = fleet.folder / f"checkpoint-{number}"
        path.write_text(note)
        for server in fleet.servers:
            done = verify(fleet, server, "--checkpoint", path)
            assert done.returncode == 0, done.stdout + done.stderr
    expect_once(fleet, load.acknowledged)


def test_the_database_goes_away_and_comes_back(fleet):
    settle(fleet)
    fleet.postgres.kill()
    done = fleet.at()("token", "create", "--as", "alice@acme.example", timeout=120)
    assert done.returncode != 0, "nothing is acknowledged that is not kept"
    fleet.postgres.restart()
    wait_until(lambda: fleet.at()("token", "create", "--as", "alice@acme.example").returncode == 0, "writes", 60)
    settle(fleet)
    for server in fleet.servers:
        assert verify(fleet, server).returncode == 0


def test_a_stopped_server_holds_nobody_up(fleet):
    """SIGSTOP at a random moment of its writes: it may hold the turn to write, for a few seconds."""
    settle(fleet)
    victim, *others = fleet.servers
    load = Load(fleet, fleet.servers[:1], people=2)
    try:
        wait_until(lambda: len(load.acknowledged) > 2, "load")
        victim.signal(signal.SIGSTOP)
        assert fleet.at(*others)("token", "create", "--as", "alice@acme.example", timeout=90).returncode == 0
    finally:
        victim.signal(signal.SIGCONT)
        load.stop()
    settle(fleet)


def test_keys_of_another_server_are_refused(fleet):
    stranger = Server(fleet.postgres.url)
    try:
        with pytest.raises(AssertionError, match="other keys"):
            stranger.start()
    finally:
        shutil.rmtree(stranger.state, ignore_errors=True)


def test_a_rolling_upgrade_under_load_and_no_way_back():
    if os.geteuid() != 0:
        pytest.skip("starts servers and a database as other users: run the tests as root")
    fleet = Fleet(schema=3)
    try:
        a, b, c = fleet.servers
        schema = lambda: tuple(map(int, fleet.postgres.sql("SELECT version, least FROM schema_version").split("|")))
        assert schema() == (3, 3)
        load = Load(fleet, fleet.servers)
        try:
            wait_until(lambda: len(load.acknowledged) > 3, "load")
            for server in (a, b, c):
                server.stop()
                server.schema = None
                server.start()  # the first of them migrates; the others go on beside it as they are
                newest, least = schema()
                assert newest > 3 and least == 3, "old and new can live with this migration"
                others = [one for one in fleet.servers if one.schema is not None]
                for one in (server, *others):
                    fleet.at(one).ok("token", "create", "--as", "alice@acme.example")
                count = len(load.acknowledged)
                wait_until(lambda: len(load.acknowledged) > count + 3, "work to go on")
        finally:
            load.stop()
        settle(fleet)
        expect_once(fleet, load.acknowledged)
        for server in fleet.servers:
            assert verify(fleet, server).returncode == 0
        # A version that does not know what is needed is refused, and says why.
        c.stop()
        c.schema = 2
        with pytest.raises(AssertionError, match="takes programs that know schema 3; this version knows up to 2"):
            c.start()
        fleet.at(a, b).ok("whoami")
    finally:
        fleet.close()
