"""Goal: the questions to a policy folder answer as documented, without a server.

Method: the commands on the sample policy and on copies of it with Cedar files; what `policy compile`
prints is given to `cedar authorize`, which must decide the same.
"""

import json
import os
import shutil
import subprocess

import pytest

from conftest import PROGRAM, ROOT

SAMPLE = ROOT / "content" / "sample-policy"


def run(*words, policy=SAMPLE):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")}
    env.update({"NO_COLOR": "1", "RINGFENCE_POLICY": str(policy)})
    return subprocess.run([PROGRAM, *map(str, words)], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(SAMPLE, tmp_path / "policy")


def test_yes_and_no_with_reasons():
    yes = run("can", "alice@acme.example", "lease.request", "acme/research")
    assert yes.returncode == 0 and yes.stdout.startswith("yes: role developer at acme/research (bindings.yaml:"), yes
    no = run("can", "alice@acme.example", "lease.request", "acme/finance", "--explain")
    assert no.returncode == 1 and no.stdout.startswith("no: needs lease.request at acme/finance"), no
    assert "nearest rule:  role developer at acme/research (bindings.yaml:" in no.stdout
    assert 'missing:  the rule is about Tenant::"acme/research"' in no.stdout
    answer = json.loads(run("can", "alice@acme.example", "audit.read", "/", "-o", "json").stdout)
    assert answer["allowed"] is False and answer["rules"] == [] and answer["missing"]


def test_mistakes_are_told():
    for words, hint in ((["lease.reqest", "acme"], "lease.request"), (["lease.request", "acme/reserch"], "acme/research")):
        done = run("can", "admin", *words)
        assert done.returncode in (2, 4) and hint in done.stderr, done
    done = run("can", "admin", "lease.request", "acme", "--context", "clas=mig")
    assert done.returncode == 2 and "class" in done.stderr


def test_an_error_names_its_field_and_no_other_commands_usage():
    question = ["can", "alice@acme.example", "lease.request", "acme/research"]
    monday = ["--at", "2026-11-16"]
    assert run(*question, *monday).returncode == 0, "a day is a time"
    for field, words in (("weekday", [*monday, "--context", "weekday=sat"]), ("class", ["--context", "class=migg"]),
                         ("now", [*monday, "--context", "now=2026-11-17T00:00:00Z"]),
                         ("mfa.age", ["--context", "mfa.age=-1m", "--context", "mfa.kind=totp"])):
        done = run(*question, *words)
        assert done.returncode == 2 and f"context: {field} " in done.stderr and "usage:" not in done.stderr, done
    for words in (["can", "nobody", "lease.request", "acme"], ["what-can", "nobody"], ["can", "admin", "lease.request", "nowhere"]):
        done = run(*words)
        assert done.returncode == 4 and "usage:" not in done.stderr, done


def test_what_is_about_the_cluster_says_so():
    for words in (["can", "admin", "audit.read", "acme"], ["who-can", "audit.read", "acme"]):
        done = run(*words, "-o", "json")
        assert done.returncode == 0 and "about the whole cluster: this answers for /" in done.stderr, done
        answer = json.loads(done.stdout)
        assert (answer[0] if isinstance(answer, list) else answer)["resource"] == "/"


def test_slips_are_told_by_every_command_that_reads_the_folder(folder):
    (folder / "never.cedar").write_text('permit(principal is User, action, resource)\nwhen { principal is Service };\n')
    for words in (["policy", "check", folder], ["policy", "test", folder], ["policy", "compile", folder]):
        done = run(*words)
        assert done.returncode == 0 and "never.cedar:" in done.stderr, done
    assert json.loads(run("policy", "check", folder, "-o", "json").stdout)["warnings"]
    (folder / "never.cedar").write_text('forbid(principal, action, resource)\nwhen { resource in Tenant::"acme/reserch" };\n')
    lost = run("policy", "check", folder)
    assert lost.returncode == 1 and "never.cedar:1" in lost.stdout and "is not in this policy" in lost.stdout, lost


def test_a_cedar_file_forbids_at_weekends(folder):
    (folder / "weekend.cedar").write_text(
        '@description("no leases at weekends")\n'
        'forbid(principal, action == Action::"lease.request", resource)\n'
        'when { ["sat", "sun"].contains(context.weekday) };\n')
    question = ["can", "alice@acme.example", "lease.request", "acme/research", "--at"]
    assert run(*question, "2026-11-16T09:00:00Z", policy=folder).returncode == 0
    saturday = run(*question, "2026-11-14T09:00:00Z", "--explain", policy=folder)
    assert saturday.returncode == 1 and "no leases at weekends (weekend.cedar:1)" in saturday.stdout, saturday
    for named in ('Tenant::"acme/reserch"', 'Tenant::"acme/research/vison"'):
        (folder / "weekend.cedar").write_text(f"forbid(principal, action, resource in {named});\n")
        lost = run("policy", "check", folder)
        assert lost.returncode == 1 and "weekend.cedar:1" in lost.stdout + lost.stderr, lost
        assert "is not in this policy" in lost.stdout + lost.stderr, lost
    (folder / "weekend.cedar").write_text("forbid(principal, action, resource)\nwhen { context.wekday == 1 };\n")
    bad = run("policy", "check", folder)
    assert bad.returncode == 1 and "weekend.cedar:2:" in bad.stdout, bad


def test_what_compile_prints_decides_the_same(tmp_path):
    files = {}
    for name, option in (("policies", None), ("schema", "--schema"), ("entities", "--entities")):
        done = run("policy", "compile", *([option] if option else []))
        assert done.returncode == 0, done.stderr
        files[name] = tmp_path / name
        files[name].write_text(done.stdout)
    given = [word for name in files for word in (f"--{name}", files[name])]
    assert run("cedar", "validate", "--policies", files["policies"], "--schema", files["schema"]).returncode == 0
    context = tmp_path / "context"
    context.write_text(json.dumps({"now": {"__extn": {"fn": "datetime", "arg": "2026-11-16"}}, "weekday": "mon"}))
    for tenant, expected in (("acme/research", 0), ("acme/finance", 2)):
        done = run("cedar", "authorize", *given, "--principal", 'User::"alice@acme.example"', "--action",
                   'Action::"lease.request"', "--resource", f'Tenant::"{tenant}"', "--context", context)
        assert done.returncode == expected, done


def test_the_reverse_questions():
    who = json.loads(run("who-can", "lease.request", "acme/research", "-o", "json").stdout)
    assert {"admin", "alice@acme.example"} <= {one["principal"] for one in who}
    assert all(one["answer"] == "yes" for one in who)
    for one in who:
        can = json.loads(run("can", one["principal"], "lease.request", "acme/research", "-o", "json").stdout)
        assert sorted(rule["id"] for rule in one["by"]) == sorted(rule["id"] for rule in can["rules"]), one
    what = run("what-can", "alice@acme.example").stdout
    assert "lease.request" in what and "acme/research" in what and "policy.apply" not in what
    hospital = ROOT / "examples" / "policies" / "hospital"
    open_images = ["who-can", "asset.read", "radiology", "-o", "json"]
    answers = json.loads(run(*open_images, policy=hospital).stdout)
    assert [(one["principal"], one["answer"]) for one in answers] == [("dr-rao@hospital.example", "if")], answers
    assert "treatment" in answers[0]["condition"]
    assert json.loads(run(*open_images, "--context", "purpose=play", policy=hospital).stdout) == []


def test_cases_and_plans(folder):
    for example in sorted((ROOT / "examples" / "policies").iterdir()):
        done = run("policy", "test", example)
        assert done.returncode == 0 and " 0 failed" in done.stdout, done
    (folder / "cases.yaml").write_text(
        "apiVersion: ringfence.dev/v1\nkind: Case\nmetadata: {name: wrong}\n"
        "spec: {principal: admin, action: lease.request, resource: acme, expect: deny}\n")
    done = run("policy", "test", folder)
    assert done.returncode == 1 and "cases.yaml:1: wrong: expected deny, allowed" in done.stdout, done
    assert "nobody may do more or less" in run("policy", "plan", SAMPLE, folder).stderr
    (folder / "more.yaml").write_text(
        "apiVersion: ringfence.dev/v1\nkind: Binding\nmetadata: {name: alice-audits}\n"
        "spec: {principal: alice@acme.example, role: auditor, tenant: acme}\n")
    changes = json.loads(run("policy", "plan", SAMPLE, folder, "-o", "json").stdout)["changes"]
    assert changes and {one["principal"] for one in changes} == {"alice@acme.example"}
    assert {one["before"] for one in changes} == {"no"} and {one["after"] for one in changes} == {"yes"}
