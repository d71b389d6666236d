"""One Ringfence for the tests of a module, started as a user would, in a folder of its own."""

import json
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RINGFENCE_BUILD_DIR", ROOT / "build" / "test"))
PROGRAM = BUILD / "ringfence"


class Ringfence:
    """A running `ringfence up` and the command line that talks to it."""

    def __init__(self, state, up_args=()):
        self.state = pathlib.Path(state)
        self.up_args = list(up_args)
        self.assess_every = "off"  # one process less for tests of other things

    def environment(self, token=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")}
        env.update({"RINGFENCE_STATE": str(self.state), "NO_COLOR": "1", "RINGFENCE_NODE_ASSESS_EVERY": self.assess_every})
        if token:
            env["RINGFENCE_TOKEN"] = token
        return env

    def __call__(self, *words, token=None, timeout=120, stdin=None, env=None):
        """Runs a command; returns the finished process with text in stdout and stderr."""
        return subprocess.run(
            [PROGRAM, *map(str, words)],
            env={**self.environment(token), **(env or {})},
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=timeout,
            check=False,
        )

    def ok(self, *words, **options):
        done = self(*words, **options)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *words, **options):
        return json.loads(self.ok(*words, "--output", "json", **options))

    def json_any(self, *words, **options):
        """Whatever it exits with: `status` that finds a problem still answers."""
        return json.loads(self(*words, "--output", "json", **options).stdout)

    def up(self):
        return self.ok("up", "--detach", "--listen", "127.0.0.1:0", *self.up_args)

    def down(self):
        return self.ok("down")

    def gpus_are_back(self):
        """A GPU is free once it is scrubbed, which takes its time on a busy machine."""

        def scrubbed():
            done = self("lease", "list", "--output", "json")
            return done.returncode != 0 or not any(one["state"] in ("ending", "scrubbing") for one in json.loads(done.stdout))

        wait_until(scrubbed, "GPUs to be scrubbed", 120)

    def token(self, principal):
        return self.json("token", "create", "--as", principal)["token"]

    def logs(self):
        text = ""
        for log in sorted((self.state / "logs").glob("*.log")):
            text += f"--- {log.name}\n" + log.read_text(errors="replace")[-4000:]
        return text

    def pid_of(self, program, *words):
        """The pids of this instance's processes that run `program` with `words` among its arguments."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            text = [a.decode(errors="replace") for a in arguments if a]
            if not text or os.path.basename(text[0]) != program:
                continue
            mine = any(str(self.state) in a for a in text) or str(self.state).encode() in environment
            if mine and all(word in text for word in words):
                found.append(int(entry.name))
        return found


class Api:
    """Plain HTTPS, without our own client."""

    def __init__(self, ringfence, token=None):
        context = json.loads((ringfence.state / "cli" / "context.json").read_text())
        self.base = "https://" + context["server"]
        self.token = token or context["token"]
        self.tls = ssl.create_default_context(cadata=context["ca_pem"])

    def __call__(self, method, path, body=None, headers=None, raw=None):
        data = raw if raw is not None else (json.dumps(body).encode() if body is not None else None)
        request = urllib.request.Request(self.base + path, data=data, method=method, headers={
            "Authorization": "Bearer " + self.token, "Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()


def children_of(pids):
    """The direct children of these processes."""
    found = []
    for pid in pids:
        found += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return found


def wait_until(condition, what, seconds=60):
    """Waits for a condition; never for a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def start(state, up_args=()):
    instance = Ringfence(state, up_args)
    try:
        instance.up()
    except AssertionError as error:
        raise AssertionError(f"{error}\n{instance.logs()}") from error
    return instance


@pytest.fixture(scope="module")
def ringfence():
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o755)
    instance = start(state)
    missing = [node["missing"] for node in instance.json("node", "list")]
    if any(missing):
        instance.down()
        shutil.rmtree(state)
        pytest.skip(f"this machine cannot run boxes: {missing}")
    yield instance
    instance("down")
    if os.environ.get("RINGFENCE_KEEP"):
        print("state kept in", state)
    else:
        shutil.rmtree(state, ignore_errors=True)


@pytest.fixture(autouse=True)
def gpus_are_back(request):
    """What the last test leased is back before the next begins."""
    if "ringfence" in request.fixturenames:
        request.getfixturevalue("ringfence").gpus_are_back()


@pytest.fixture(scope="module")
def developer(ringfence):
    """The token of somebody who may run jobs for acme/research/vision and nothing of globex."""
    return ringfence.token("alice@acme.example")
