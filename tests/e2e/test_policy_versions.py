"""Goal: a policy comes into force whole, at once and on record, or not at all; an earlier one is back at once.

Method: a real server; good, bad and locking policies applied by the right and the wrong people, quickly after
each other, and with kill -9 of the server in the middle.
"""

import json
import os
import shutil
import signal
import threading

import pytest

from conftest import ROOT, Api, wait_until
from test_access import denied

NEWCOMER = """apiVersion: ringfence.dev/v1
kind: Principal
metadata:
  name: {}
spec:
  kind: user
"""


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(ROOT / "content" / "sample-policy", tmp_path / "policy")
    return tmp_path / "policy"


def add(folder, name):
    (folder / "more.yaml").write_text(NEWCOMER.format(name))
    return folder


def entries(ringfence, action):
    """Of this action, the oldest first."""
    items = ringfence.json("audit", "list", "--action", action, "-n", "1000")
    return [item["entry"] for item in sorted(items, key=lambda item: item["index"])]


def newest(ringfence):
    return ringfence.json("policy", "versions")[0]


def test_the_folder_is_the_first_version_and_counts_until_something_is_applied(ringfence, folder):
    first = newest(ringfence)
    assert first["origin"] == "folder" and first["in_force"] and first["by"] == "ringfence", first
    ringfence.ok("policy", "reload")
    assert newest(ringfence) == first, "the same folder again is no new version"
    trap = ringfence.state / "policy" / "trap.cedar"
    for condition in ("unless { context has mfa }", "when { context has network }"):
        trap.write_text(f'forbid (principal, action == Action::"policy.apply", resource) {condition};\n')
        locked = ringfence("policy", "reload")
        trap.unlink()
        assert locked.returncode == 6 and newest(ringfence) == first, locked
    done = ringfence.json("policy", "apply", add(folder, "zoe@acme.example"), "--reason", "zoe is new")
    assert done["changed"] and done["version"] == first["version"] + 1 and done["previous"] == first["version"]
    assert ringfence.token("zoe@acme.example"), "in force at once"
    version = newest(ringfence)
    assert (version["by"], version["origin"], version["reason"]) == ("admin", "apply", "zoe is new")
    assert ringfence.json("policy", "show")["version"] == version["version"]
    refused = ringfence("policy", "reload")
    assert refused.returncode != 0 and "has not counted since" in refused.stderr, refused.stderr
    assert newest(ringfence) == version


def test_the_same_again_is_no_new_version(ringfence, folder):
    ringfence.ok("policy", "apply", add(folder, "same@acme.example"))
    before = newest(ringfence)
    assert "nothing to change" in ringfence("policy", "apply", folder).stderr
    assert newest(ringfence) == before


def test_rollback_is_at_once_and_on_record(ringfence, folder):
    ringfence.ok("policy", "apply", folder)
    before = newest(ringfence)
    ringfence.ok("policy", "apply", add(folder, "temp@acme.example"))
    token = ringfence.token("temp@acme.example")
    back = ringfence.json("policy", "rollback", "--reason", "not yet")
    assert back["restores"] == before["version"] and back["digest"] == before["digest"]
    assert "no longer in the policy" in denied(ringfence("whoami", token=token))
    entry = entries(ringfence, "policy.rollback")[-1]
    assert entry["actor"]["principal"] == "admin" and entry["detail"]["reason"] == "not yet"
    assert entry["detail"]["version"] == back["version"] and entry["detail"]["new_policy"] == before["digest"]
    assert entry["detail"]["previous_version"] == before["version"] + 1
    again = ringfence.json("policy", "rollback", before["version"] + 1)
    assert again["digest"] == back["previous_digest"]
    ringfence.ok("whoami", token=token)
    assert ringfence("policy", "rollback", 100000).returncode != 0


def test_rolling_back_to_what_is_in_force_changes_nothing(ringfence):
    before = newest(ringfence)
    same = ringfence.json("policy", "rollback", before["version"])
    assert not same["changed"] and newest(ringfence)["version"] == before["version"]
    assert "nothing to change" in ringfence("policy", "rollback", before["version"]).stderr


def test_questions_say_which_policy_answers(ringfence, folder):
    add(folder, "only-here")
    ringfence.json("policy", "apply", folder)
    asked = ("can", "admin", "lease.request", "acme", "-o", "json")
    by_folder, in_force = ringfence(*asked), ringfence(*asked, "--in-force")
    assert "the server has another policy in force" in by_folder.stderr, by_folder
    assert "another policy" not in in_force.stderr, in_force
    assert json.loads(in_force.stdout)["policy"] == newest(ringfence)["digest"] != json.loads(by_folder.stdout)["policy"]
    plan = ringfence.json("policy", "plan", folder, "--in-force")
    assert plan["before"] == plan["after"] and plan["changes"] == []


def test_a_version_can_be_had_back_as_a_folder(ringfence, folder, tmp_path):
    ringfence.ok("policy", "apply", add(folder, "kept@acme.example"))
    version = newest(ringfence)
    ringfence.ok("policy", "show", version["version"], "--write", tmp_path / "again")
    assert {p.name: p.read_text() for p in folder.iterdir()} == {p.name: p.read_text() for p in (tmp_path / "again").iterdir()}
    assert ringfence.json("policy", "check", tmp_path / "again")["digest"] == version["digest"]
    assert ringfence("policy", "show", version["version"], "--write", folder).returncode != 0, "never over what is there"
    whole = ringfence.json("policy", "show", version["version"])
    assert json.loads(whole["envelope"])["payloadType"] == "application/vnd.ringfence.policy-version+json"


def test_a_bad_policy_changes_nothing_and_is_on_record(ringfence, folder):
    before = newest(ringfence)
    (folder / "bad.yaml").write_text("kind: Tenant\nmetadata: {name: acme/research/vision/too/deep}\n")
    done = ringfence("policy", "apply", folder)
    assert done.returncode == 2 and "bad.yaml:" in done.stderr, done.stderr
    # The server checks for itself what another client sends.
    api = Api(ringfence)
    files = {path.name: path.read_text() for path in folder.iterdir()}
    status, _, text = api("POST", "/v1/policy/versions", {"files": files})
    assert status == 400 and "bad.yaml:" in json.loads(text)["detail"], text
    for name in ("../up.yaml", "/etc/x.yaml", "a//b.yaml", ".hidden.yaml", "a/../b.yaml", ""):
        assert api("POST", "/v1/policy/versions", {"files": {name: "x"}})[0] == 400, name
    for body in ({}, {"files": []}, {"files": {"a.yaml": 1}}, {"files": {}, "more": 1}):
        assert api("POST", "/v1/policy/versions", body)[0] == 400, body
    assert newest(ringfence) == before
    entry = entries(ringfence, "policy.apply")[-1]
    assert entry["result"] == "error" and "bad.yaml:" in entry["detail"]["new_policy"]


def test_only_who_may_apply_does(ringfence, folder, developer):
    before = newest(ringfence)
    amir = ringfence.token("amir@audit.example")
    for token in (developer, amir):
        denied(ringfence("policy", "apply", add(folder, "mallory@acme.example"), token=token))
        denied(ringfence("policy", "rollback", token=token))
    denied(ringfence("policy", "versions", token=developer))
    assert ringfence.json("policy", "versions", token=amir)[0] == before


def test_nobody_is_locked_out_but_by_breaking_the_glass(ringfence, folder):
    before = newest(ringfence)
    # Somebody else is the only administrator, and holds no token.
    bindings = (folder / "bindings.yaml").read_text()
    (folder / "bindings.yaml").write_text(bindings.replace("principal: admin\n", "principal: nora@acme.example\n"))
    add(folder, "nora@acme.example")
    done = ringfence("policy", "apply", folder)
    assert done.returncode != 0 and "locked out" in done.stderr, done.stderr
    assert "reason" in ringfence("policy", "apply", folder, "--force").stderr
    assert newest(ringfence) == before
    forced = ringfence.json("policy", "apply", folder, "--force", "--reason", "drill")
    assert forced["forced"]
    denied(ringfence("policy", "rollback"))
    # Whoever has the server's machine has the way back: start from the folder instead.
    ringfence.down()
    ringfence.ok("up", "--detach", "--listen", "127.0.0.1:0", env={"RINGFENCE_POLICY_INSTEAD_OF": str(forced["version"])})
    version = newest(ringfence)
    assert version["origin"] == "folder" and version["forced"] and version["version"] == forced["version"] + 1
    broken = [entry["detail"]["reason"] for entry in entries(ringfence, "policy.apply") if entry["detail"].get("break_glass")]
    assert broken[-2] == "drill"


def test_an_overtaken_change_is_refused(ringfence, folder):
    seen = newest(ringfence)["version"]
    ringfence.ok("policy", "apply", add(folder, "one@acme.example"), "--expect", seen)
    done = ringfence("policy", "apply", add(folder, "two@acme.example"), "--expect", seen)
    assert done.returncode != 0 and "somebody else has changed it" in done.stderr, done.stderr


def test_applied_policy_outlives_a_restart_and_a_kill_leaves_old_or_new(ringfence, folder, tmp_path):
    folders = []
    for name in ("left@acme.example", "right@acme.example"):
        copy = tmp_path / name
        shutil.copytree(folder, copy)
        folders.append(add(copy, name))
    known = {ringfence.json("policy", "check", one)["digest"] for one in folders}
    ringfence.ok("policy", "apply", folders[0])
    stopping = threading.Event()

    def alternate():
        turn = 0
        while not stopping.is_set():
            turn += 1
            ringfence("policy", "apply", folders[turn % 2])

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        begun = newest(ringfence)["version"]
        wait_until(lambda: newest(ringfence)["version"] > begun + 2, "two quick ones after each other")
        victims = ringfence.pid_of("ringfence", "server")
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: set(ringfence.pid_of("ringfence", "server")) - set(victims), "the server to start again")
    finally:
        stopping.set()
        thread.join()
    wait_until(lambda: ringfence("policy", "show").returncode == 0, "the server")
    shown, version = ringfence.json("policy", "show"), newest(ringfence)
    assert shown["digest"] == version["digest"] and shown["version"] == version["version"]
    assert version["digest"] in known and version["signed"]
    made = [entry["detail"]["version"] for entry in entries(ringfence, "policy.apply") if entry["detail"].get("changed")]
    assert made == sorted(set(made)) and made[-1] == version["version"], "each version once on record, in order"


def test_a_long_policy_and_one_too_long(ringfence, folder):
    add(folder, "long@acme.example")
    (folder / "long.yaml").write_text("".join(f"# {i:0100d}\n" for i in range(9000)))
    (folder / "long2.yaml").write_text("".join(f"# {i:0100d}\n" for i in range(9000)))
    assert ringfence.json("policy", "apply", folder)["changed"], "1.8 MiB"
    assert ringfence.json("policy", "rollback")["changed"]
    api = Api(ringfence)
    try:
        assert api("POST", "/v1/policy/versions", {"files": {"a.yaml": "#" * (17 << 20)}})[0] == 413
    except OSError:
        pass  # cut off while still sending: refused all the same
    assert api("GET", "/v1/policy")[0] == 200
