"""Goal: containers of another runtime get a lease's GPUs and nothing else, and none without one.

Method: real podman with runc, an image made on the spot, a folder of CDI documents of its own (bound
over /run/cdi in a mount namespace, so that the machine's own stays as it is), simulated GPUs. A
device that the cgroup allows answers "No such device", as there is no driver; one that it denies
answers "Operation not permitted".
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import jsonschema
import pytest

from conftest import BUILD, ROOT, start, wait_until

VISION = ("-t", "acme/research/vision")
SCHEMA = ROOT / "tests" / "vectors" / "cdi" / "schema"
HOOK = BUILD / "ringfence-hook"


class Podman:
    """Root's podman with storage, hooks and CDI folder of its own."""

    def __init__(self, home, cdi):
        self.home, self.cdi, self.hooks = home, cdi, home / "hooks"
        self.hooks.mkdir()
        (home / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\nrunroot = "{home}/run"\ngraphroot = "{home}/graph"\n')

    def __call__(self, *words, cdi=None):
        script = 'mount --bind "$1" /run/cdi && shift && exec podman "$@"'
        options = ["--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "none",
                   "--hooks-dir", self.hooks]
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", cdi or self.cdi, *options, *words],
            env={"PATH": os.environ["PATH"], "HOME": str(self.home),
                 "CONTAINERS_STORAGE_CONF": str(self.home / "storage.conf")},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)

    def run(self, *words, image="localhost/busy", command="true", detach=False, **options):
        return self("run", *(["--detach"] if detach else ["--rm"]), "--network", "none",
                    "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", *words, image,
                    "sh", "-c", command, **options)


@pytest.fixture(scope="module")
def cdi_folder():
    made = not os.path.exists("/run/cdi")
    if made:
        os.mkdir("/run/cdi", 0o755)  # only to bind over
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-cdi-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
    if made:
        os.rmdir("/run/cdi")


@pytest.fixture(scope="module")
def ringfence(cdi_folder):
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    state = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(state, 0o755)
    instance = start(state, ["--cdi-dir", cdi_folder])
    missing = [node["missing"] for node in instance.json("node", "list")]
    if any(missing):
        instance.down()
        shutil.rmtree(state)
        pytest.skip(f"this machine cannot run boxes: {missing}")
    yield instance
    instance("down")
    shutil.rmtree(state, ignore_errors=True)


@pytest.fixture(scope="module")
def podman(ringfence, cdi_folder):
    if not shutil.which("podman") or not os.path.exists("/bin/busybox"):
        pytest.skip("needs podman and busybox-static: scripts/setup.sh test")
    home = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-podman-"))
    instance = Podman(home, cdi_folder)
    (instance.hooks / "ringfence.json").write_text(ringfence.ok("cdi", "hook"))
    root = home / "image"
    for folder in ("bin", "dev", "etc", "tmp"):
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for name in ("sh", "ls", "cat", "sleep", "mv", "mknod", "dd", "true", "echo", "env"):
        (root / "bin" / name).symlink_to("busybox")
    subprocess.run(["tar", "-C", root, "-cf", home / "image.tar", "."], check=True)
    for change, name in ((), "localhost/busy"), (("--change", "ENV NVIDIA_VISIBLE_DEVICES=all"),
                                                 "localhost/greedy"):
        done = instance("import", "--quiet", *change, home / "image.tar", name)
        assert done.returncode == 0, done.stderr
    yield instance
    instance("rm", "--all", "--force", "--time", "0")
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def node(tmp_path):
    """A node of a GPU that nobody has a lease for, as a host with a driver has them in /dev."""
    path = tmp_path / "nvidia7"
    os.mknod(path, 0o666 | 0o020000, os.makedev(195, 7))
    return path


def hold(ringfence, *words):
    lease = ringfence.json("lease", "hold", *VISION, *words)
    assert lease["state"] == "active" and lease["device"] == f"ringfence.dev/lease={lease['id']}"
    return lease


def end(ringfence, lease):
    ringfence.ok("lease", "end", lease["id"])
    closed = ringfence.json("lease", "show", "--wait", lease["id"])
    assert closed["state"] == "closed", closed
    return closed


def minor_of(ringfence, uuid):
    scenario = json.loads((ringfence.state / "node/driver/scenario.json").read_text())
    return next(gpu["minor"] for gpu in scenario["gpus"] if gpu["uuid"] == uuid)


def test_a_container_gets_exactly_the_leases_devices(ringfence, podman):
    mine, other = hold(ringfence, "--gpus", "2"), hold(ringfence)
    minors = [minor_of(ringfence, uuid) for uuid in mine["gpus"]]
    foreign = minor_of(ringfence, other["gpus"][0])
    done = podman.run("--device", mine["device"], "--cap-add", "MKNOD", command=f"""
        echo /dev/nvidia*; ls /run/ringfence/driver/memory
        for m in {' '.join(map(str, minors))}; do cat /dev/nvidia$m; done
        mknod /dev/other c 195 {foreign} && echo made && cat /dev/other""")
    lines = done.stdout.splitlines()
    assert set(lines[0].split()) == {*(f"/dev/nvidia{m}" for m in minors), "/dev/nvidiactl", "/dev/nvidia-uvm"}
    assert sorted(lines[1:3]) == sorted(mine["gpus"])
    assert lines[3:] == ["made"], lines
    for minor in minors:
        assert f"'/dev/nvidia{minor}': No such device or address" in done.stderr
    assert "'/dev/other': Operation not permitted" in done.stderr
    for lease in (mine, other):
        end(ringfence, lease)


def test_the_documents_are_valid(ringfence, podman):
    lease = hold(ringfence, "--gpus", "3")
    document = json.loads((podman.cdi / f"ringfence-{lease['id']}.json").read_text())
    schema = json.loads((SCHEMA / "schema.json").read_text())
    resolver = jsonschema.RefResolver(f"file://{SCHEMA}/", schema)
    jsonschema.validate(document, schema, resolver=resolver)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "devices": 1}, schema, resolver=resolver)
    assert document["cdiVersion"] == "0.5.0" and document["kind"] == "ringfence.dev/lease"
    assert [device["name"] for device in document["devices"]] == [lease["id"]]
    end(ringfence, lease)


def test_containers_end_with_the_lease(ringfence, podman):
    lease = hold(ringfence)
    kept = json.loads((podman.cdi / f"ringfence-{lease['id']}.json").read_text())
    memory = f"/run/ringfence/driver/memory/{lease['gpus'][0]}"
    started = podman.run("--device", lease["device"], "--name", "stubborn", detach=True, command=f"""
        echo secret | dd of={memory} conv=notrunc
        mv /dev/nvidia{minor_of(ringfence, lease['gpus'][0])} /dev/hidden
        trap '' TERM; echo ready; while :; do sleep 1; done""")
    assert started.returncode == 0, started.stderr
    wait_until(lambda: "ready" in podman("logs", "stubborn").stdout, "the container")
    closed = end(ringfence, lease)
    assert podman("inspect", "--format", "{{.State.Running}}", "stubborn").stdout.strip() == "false"
    assert closed["receipts"]
    [scrub] = [entry["entry"]["detail"] for entry in ringfence.json("audit", "list", "--lease", lease["id"])
               if entry["entry"]["action"] == "gpu.scrub"]
    assert scrub["residue_bytes"] >= len("secret"), scrub
    refused = podman.run("--device", lease["device"], command="echo BAD")
    assert refused.returncode != 0 and "BAD" not in refused.stdout
    assert "unresolvable CDI devices" in refused.stderr
    # A runtime that has kept the document in its memory gets no further: the hook knows better.
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "old.json").write_text(json.dumps(kept))
        refused = podman.run("--device", lease["device"], command="echo BAD", cdi=folder)
        assert refused.returncode != 0 and "BAD" not in refused.stdout
        assert "is not held on this node" in refused.stderr
    assert podman("start", "stubborn").returncode != 0


def test_without_a_lease_the_hook_refuses(ringfence, podman, node):
    assert podman.run(command="echo fine").stdout == "fine\n"
    lease = hold(ringfence)
    ways = {
        "a device": ("--device", f"{node}:/dev/nvidia7"),
        "under another name": ("--device", f"{node}:/dev/harmless"),
        "a mount": ("--volume", f"{node}:/data"),
        "a rule": ("--device-cgroup-rule", "c 195:* rw"),
        "everything": ("--privileged",),
        "more than the lease": ("--device", lease["device"], "--device", f"{node}:/dev/nvidia7"),
        "a claim": ("--env", f"RINGFENCE_LEASE={lease['id']}", "--device", f"{node}:/dev/nvidia7"),
    }
    for what, words in ways.items():
        done = podman.run(*words, command="echo BAD")
        assert done.returncode != 0 and "BAD" not in done.stdout, what
        assert "ringfence-hook: refused: the container asks for" in done.stderr, (what, done.stderr)
    end(ringfence, lease)


def test_the_images_environment_has_no_say(ringfence, podman):
    done = podman.run(image="localhost/greedy", command="echo $NVIDIA_VISIBLE_DEVICES; ls /dev")
    assert done.stdout.startswith("all\n") and "nvidia" not in done.stdout
    lease = hold(ringfence)
    done = podman.run("--device", lease["device"], image="localhost/greedy",
                      command="echo $NVIDIA_VISIBLE_DEVICES; echo /dev/nvidia[0-9]*")
    assert done.stdout.splitlines() == ["void", f"/dev/nvidia{minor_of(ringfence, lease['gpus'][0])}"]
    end(ringfence, lease)


def test_the_hook_takes_nothing_from_its_environment(tmp_path):
    (tmp_path / "evil.c").write_text(
        '#include <fcntl.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void f(void)'
        '{ open(getenv("MARK"), O_CREAT | O_WRONLY, 0600); }\n')
    evil = tmp_path / "evil.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", evil, tmp_path / "evil.c"], check=True)
    environment = {"LD_PRELOAD": str(evil), "MARK": str(tmp_path / "mark")}
    done = subprocess.run([HOOK, "--held", tmp_path], env=environment, input="{}", text=True,
                          capture_output=True, check=False)
    assert done.returncode == 1 and "refused" in done.stderr
    assert not (tmp_path / "mark").exists()
    subprocess.run(["/bin/true"], env=environment, check=True)
    assert (tmp_path / "mark").exists(), "the library would not have worked anyway"


def test_bad_input_makes_the_hook_refuse(tmp_path):
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    state = {"id": "abc", "pid": os.getpid(), "bundle": str(bundle)}
    good = {"root": {"path": "/"}}
    cases = {
        "no state": ("", good),
        "a state without end": (" " * 300_000, good),
        "another process": (json.dumps({**state, "pid": 1}), good),
        "no bundle": (json.dumps({**state, "bundle": "/nonexistent"}), good),
        "no configuration": (json.dumps(state), None),
        "no root": (json.dumps(state), {"root": {"path": "/nonexistent"}}),
        "deep nonsense": (json.dumps(state), "[" * 100_000),
    }
    for what, (text, config) in cases.items():
        path = bundle / "config.json"
        path.unlink(missing_ok=True)
        if config is not None:
            path.write_text(config if isinstance(config, str) else json.dumps(config))
        done = subprocess.run([HOOK, "--held", tmp_path], input=text, text=True, env={},
                              capture_output=True, check=False, timeout=60)
        assert done.returncode == 1 and done.stderr.startswith("ringfence-hook: refused: "), (what, done)
    (bundle / "config.json").unlink(missing_ok=True)
    (bundle / "config.json").symlink_to("/etc/hostname")
    done = subprocess.run([HOOK, "--held", tmp_path], input=json.dumps(state), text=True, env={},
                          capture_output=True, check=False)
    assert done.returncode == 1 and "link" in done.stderr


def test_sync_shows_and_mends(ringfence):
    lease = hold(ringfence)
    document = f"ringfence-{lease['id']}.json"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        sync = ("cdi", "sync", "--dir", folder)
        theirs = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
                  "devices": [{"name": "all", "containerEdits": {"env": ["A=b"]}}]}
        (folder / "nvidia.json").write_text(json.dumps(theirs))
        (folder / "claim.json").write_text(json.dumps({**theirs, "kind": "ringfence.dev/lease"}))

        def found(*words, status=0):
            done = ringfence(*sync, *words, "-o", "json")
            assert done.returncode == status, done.stderr
            return {file["name"]: file["finding"] for file in json.loads(done.stdout)["files"]}

        before = {"nvidia.json": "foreign", "claim.json": "claimed", document: "missing"}
        assert found("--check", status=1) == before
        assert not (folder / document).exists()
        assert found() == before
        assert found("--check") == {"nvidia.json": "foreign", document: "in_step"}
        assert json.loads((folder / "nvidia.json").read_text()) == theirs
        assert (folder / "claim.json.refused-by-ringfence").exists()
        folder.chmod(0o777)
        refused = ringfence(*sync)
        assert refused.returncode == 6 and "others than root" in refused.stderr
        assert "chmod go-w" in refused.stderr
        folder.chmod(0o755)
        watch = subprocess.Popen([BUILD / "ringfence", *map(str, sync), "--watch"],
                                 env=ringfence.environment(), stdout=subprocess.DEVNULL)
        try:
            for _ in range(2):
                (folder / document).unlink()
                wait_until((folder / document).exists, "the document to come back")
            end(ringfence, lease)
            wait_until(lambda: not (folder / document).exists(), "the document to go")
        finally:
            watch.terminate()
            assert watch.wait() == 0


def test_tampering_reaches_the_audit_log(ringfence, cdi_folder):
    lease = hold(ringfence)
    document = cdi_folder / f"ringfence-{lease['id']}.json"
    good = document.read_text()
    document.write_text(good.replace('"minor":', '"minor":1'))
    wait_until(lambda: document.read_text() == good, "the jailer to write it anew")

    def told():
        return [entry["entry"]["detail"] for entry in ringfence.json("audit", "list", "--action", "node.incident")]

    [incident] = wait_until(lambda: [d for d in told() if lease["id"] in d["detail"]], "the incident")
    assert incident["what"] == "cdi_tampered"
    end(ringfence, lease)


def test_holding_is_for_those_who_may(ringfence):
    token = ringfence.token("alice@acme.example")
    done = ringfence("lease", "hold", *VISION, token=token)
    assert done.returncode == 3 and "lease.hold" in done.stderr
