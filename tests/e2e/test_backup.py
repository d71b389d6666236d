"""Goal: a server that is lost with its machine is restored from a backup, works again and is doubted
where it must be; a backup that is older than what a witness saw is recognised as a rollback.

Method: backups while jobs run; the whole state folder destroyed; a node of its own that outlives the
server, still holds a job that nobody remembers, and says that the restored log is too short.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

from conftest import PROGRAM, Ringfence, start, wait_until

VISION = ("-t", "acme/research/vision")


@pytest.fixture
def place(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    folder = tempfile.mkdtemp(prefix="ringfence-e2e-")
    os.chmod(folder, 0o755)
    passphrase = os.path.join(folder, "passphrase")
    with open(passphrase, "w") as file:
        file.write("correct horse battery staple\n")
    os.chmod(passphrase, 0o600)
    started = []
    yield folder, passphrase, started
    for instance in started:
        instance("down")
    shutil.rmtree(folder, ignore_errors=True)


def up(place, name, *up_args):
    folder, _, started = place
    instance = start(os.path.join(folder, name), up_args)
    started.append(instance)
    if any(node["missing"] for node in instance.json("node", "list") if node["state"] != "silent"):
        pytest.skip("this machine cannot run boxes")
    return instance


def restored(place, name, backup, *words):
    folder, passphrase, _ = place
    instance = Ringfence(os.path.join(folder, name))
    instance.ok("backup", "restore", backup, "--passphrase-file", passphrase, *words)


def active_job(ringfence):
    lease = ringfence.ok("run", *VISION, "--detach", "--", "sh", "-c", "echo on; sleep 600").strip()
    wait_until(lambda: ringfence.json("lease", "show", lease)["state"] == "active", "the job")
    return lease


def test_restored_onto_an_empty_machine(place):
    folder, passphrase, _ = place
    old = up(place, "old", "--node-name", "backup-one")
    assert old.ok("run", *VISION, "--", "echo", "before") == "before\n"
    first = old.json("lease", "list", "--all")[0]["id"]
    wait_until(lambda: old.json("lease", "show", first)["state"] == "closed", "its GPU to be scrubbed")
    token = old.token("alice@acme.example")
    lease = active_job(old)
    checkpoint = os.path.join(folder, "checkpoint")
    with open(checkpoint, "w") as file:
        file.write(old.ok("audit", "checkpoint"))
    backup = os.path.join(folder, "one.rfb")
    made = old.json("backup", "create", backup, "--passphrase-file", passphrase)
    assert made["verified"] and made["entries"] >= made["log_size"] > 0
    assert oct(os.stat(backup).st_mode & 0o777) == "0o600"
    again = old("backup", "create", backup, "--passphrase-file", passphrase)
    assert again.returncode == 6 and "exists already" in again.stderr
    old.down()
    shutil.rmtree(old.state)

    # Nothing of the backup can be read or restored without the passphrase.
    wrong = os.path.join(folder, "wrong")
    with open(wrong, "w") as file:
        file.write("another passphrase\n")
    os.chmod(wrong, 0o600)
    target = Ringfence(os.path.join(folder, "new"))
    refused = target("backup", "restore", backup, "--passphrase-file", wrong)
    assert refused.returncode == 8 and not target.state.exists(), refused.stderr

    restored(place, "new", backup)
    new = up(place, "new", "--node-name", "backup-one")
    assert new("status").returncode == 0, new.ok("status")
    entries = [item["entry"] for item in new.json("audit", "list", "--limit", "1000")]
    [entry] = [one for one in entries if one["action"] == "server.restored"]
    assert entry["detail"]["leases_ended"] == 1 and entry["detail"]["gpus_to_scrub"] == 8
    scrubs = [one for one in entries[entries.index(entry):] if one["action"] == "gpu.scrub"]
    assert len({gpu for one in scrubs for gpu in one["gpus"]}) == 8, "each GPU was scrubbed again"
    ended = new.json("lease", "show", lease)
    assert ended["state"] == "closed" and "restored from a backup" in ended["reason"]
    assert new.ok("lease", "logs", first) == "before\n"
    stale = new("run", *VISION, "--", "true", token=token)
    assert stale.returncode == 3 and "revoked" in stale.stderr
    assert new.ok("run", *VISION, "--", "echo", "after") == "after\n"
    # The log goes on where the old one was.
    assert new("audit", "verify").returncode == 0
    grown = new("audit", "verify", "--checkpoint", checkpoint)
    assert grown.returncode == 0, grown.stdout


def test_a_damaged_backup_writes_nothing(place):
    folder, passphrase, _ = place
    old = up(place, "old", "--node-name", "backup-one")
    backup = os.path.join(folder, "one.rfb")
    old.ok("backup", "create", backup, "--passphrase-file", passphrase)
    with open(backup, "rb") as file:
        good = file.read()
    target = Ringfence(os.path.join(folder, "new"))
    before = set(os.listdir(folder))
    for command, damaged in (("restore", good[:-1]), ("verify", good + b"x"),
                             ("restore", good[:-30] + bytes([good[-30] ^ 1]) + good[-29:])):
        with open(backup, "wb") as file:
            file.write(damaged)
        done = target("backup", command, backup, "--passphrase-file", passphrase)
        assert done.returncode == 8 and "damaged" in done.stderr, done.stderr
    assert set(os.listdir(folder)) == before
    os.chmod(passphrase, 0o644)
    open_to_all = old("backup", "verify", backup, "--passphrase-file", passphrase)
    assert open_to_all.returncode == 2 and "chmod 600" in open_to_all.stderr
    filled = old("backup", "restore", backup, "--passphrase-file", passphrase)
    assert filled.returncode == 6 and "not empty" in filled.stderr


def start_agent(state, *words):
    env = {key: value for key, value in os.environ.items() if not key.startswith("RINGFENCE_")}
    return subprocess.Popen(
        [PROGRAM, "agent", "--node-name", "backup-a", *words], env={**env, "RINGFENCE_STATE": state},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=open(os.path.join(state, "agent.log"), "a"),
    )


def test_a_witness_recognises_the_rollback(place):
    folder, passphrase, started = place
    # Names decide where a job goes when all else is equal: backup-a comes first.
    old = up(place, "old", "--node-name", "backup-z")
    address = json.loads((old.state / "cli" / "context.json").read_text())["server"]
    survivor = os.path.join(folder, "survivor")
    os.mkdir(survivor, 0o755)
    token = os.path.join(folder, "join")
    with open(token, "w") as file:
        file.write(old.json("node", "token", "create", "backup-a")["token"])
    os.chmod(token, 0o600)
    agent = start_agent(survivor, "--join-token", token)
    try:
        wait_until(lambda: old.json_any("status")["gpus"]["free"] == 16, "both nodes' GPUs")
        backup = os.path.join(folder, "one.rfb")
        old.ok("backup", "create", backup, "--passphrase-file", passphrase)
        # More than the backup knows: jobs that came and went, and one that still runs.
        for word in ("one", "two"):
            assert old.ok("run", *VISION, "--", "echo", word) == word + "\n"
        lease = active_job(old)
        running = old.json("lease", "show", lease)
        assert running["node"] == "backup-a"
        witness = os.path.join(survivor, "node", "agent", "witness.state")
        size = old.json_any("status")["audit"]["entries"]
        wait_until(lambda: int(open(witness).read().split("\n")[1]) >= size, "the witness")
        for pid in old.pid_of("ringfence") + old.pid_of("ringfence-jailer"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_until(lambda: not old.pid_of("ringfence") and not old.pid_of("ringfence-jailer"),
                   "the machine to be gone")
        started.remove(old)
        shutil.rmtree(old.state)

        # What the node saw shows it, before anything is restored.
        verified = Ringfence(folder)("backup", "verify", backup, "--passphrase-file", passphrase,
                                     "--checkpoint", witness, "-o", "json")
        assert verified.returncode == 1
        assert json.loads(verified.stdout)["rollback"] is True
        target = Ringfence(os.path.join(folder, "new"))
        refused = target("backup", "restore", backup, "--passphrase-file", passphrase,
                         "--checkpoint", witness)
        assert refused.returncode == 6 and "rollback" in refused.stderr
        assert not target.state.exists()

        restored(place, "new", backup, "--checkpoint", witness, "--accept-rollback")
        new = Ringfence(os.path.join(folder, "new"), ("--node-name", "backup-z"))
        started.append(new)
        new("up", "--detach", "--listen", address, "--node-name", "backup-z")

        def refusal():
            problems = new.json_any("status")["problems"]
            return next((one for one in problems if "refuses the audit log" in one["what"]), None)

        problem = wait_until(refusal, "the refusal\n" + new.logs())
        assert "rollback" in problem["what"] and "backup-a" in problem["what"]
        assert "restored from a backup" in problem["fix"] and "begin anew" in problem["fix"]
        assert new("status").returncode == 1

        # The job that nobody remembers is ended, and its GPU scrubbed before it is anybody's.
        wait_until(lambda: new.json_any("status")["gpus"]["free"] == 16,
                   "all GPUs to be scrubbed\n" + new.logs(), seconds=120)
        [gpu] = running["gpus"]
        scrubs = [item["entry"] for item in new.json("audit", "list", "--action", "gpu.scrub", "--limit", "1000")]
        assert any(gpu in one["gpus"] and one["lease"] == "" for one in scrubs)
        refusals = new.json("audit", "list", "--action", "audit.witness_refused")
        assert len(refusals) == 1, "said once"

        # The way out: somebody with power over the node lets its witness begin anew.
        agent.terminate()
        agent.wait(timeout=60)
        os.rename(witness, witness + ".before-restore")
        agent = start_agent(survivor)
        wait_until(lambda: new("status").returncode == 0, "the witness to begin anew\n" + new.logs())
        assert len(new.json("audit", "list", "--action", "audit.witness_resumed")) == 1
        assert new("audit", "verify").returncode == 0
    finally:
        agent.terminate()
        agent.wait(timeout=60)
