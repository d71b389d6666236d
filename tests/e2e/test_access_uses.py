"""Goal: who holds what and what of it is used is known, and what is not used can be taken away by a patch.

Method: people do a few things on a real server; list, report and suggest are held against what they did.
"""

import csv
import io
import json
import shutil
import subprocess

from conftest import ROOT
from test_access import denied

ALICE = "alice@acme.example"


def bindings(ringfence, principal, **options):
    return ringfence.json("access", "list", principal, **options)


def test_uses_and_grants_are_known(ringfence, developer):
    ringfence.ok("run", "-t", "acme/research/vision", "--", "true", token=developer)
    ringfence.ok("lease", "list", token=developer)
    (mine,) = bindings(ringfence, ALICE)
    used = {use["action"]: use for use in mine["actions"]}
    assert mine["role"] == "developer" and mine["tenant"] == "acme/research" and mine["file"] == "bindings.yaml"
    assert used["lease.request"]["tenant"] == "acme/research/vision" and used["lease.request"]["uses"] >= 1
    assert "lease.end" not in used and mine["last_used"] and mine["uses"] >= 2
    assert mine["granted"]["version"] == 1 and mine["granted"]["by"] == "ringfence"
    (never,) = bindings(ringfence, "olga@ops.example")
    assert never["uses"] == 0 and "last_used" not in never
    assert "never" in ringfence.ok("access", "list", "olga@ops.example")
    denied(ringfence("access", "list", token=developer))


def test_a_denied_request_is_no_use(ringfence, developer):
    denied(ringfence("token", "list", token=developer))
    denied(ringfence("run", "-t", "globex/genomics/folding", "--", "true", token=developer))
    (mine,) = bindings(ringfence, ALICE)
    assert not [use for use in mine["actions"] if use["action"] == "token.read" or use["tenant"].startswith("globex")]


def test_uses_outlive_the_server(ringfence):
    before = bindings(ringfence, ALICE)[0]
    ringfence.down()
    ringfence.up()
    after = bindings(ringfence, ALICE)[0]
    assert after["uses"] >= before["uses"] and after["last_used"] >= before["last_used"]


def test_a_new_binding_names_who_granted_it(ringfence, tmp_path):
    folder = tmp_path / "policy"
    shutil.copytree(ROOT / "content" / "sample-policy", folder)
    (folder / "more.yaml").write_text("apiVersion: ringfence.dev/v1\nkind: Binding\nmetadata:\n  name: more\nspec:\n"
                                      f"  principal: {ALICE}\n  role: auditor\n  tenant: acme/finance\n")
    version = ringfence.json("policy", "apply", folder)["version"]
    grants = {one["role"]: one["granted"] for one in bindings(ringfence, ALICE)}
    assert grants["developer"]["version"] == 1
    assert grants["auditor"]["version"] == version and grants["auditor"]["by"] == "admin"


def test_reports(ringfence):
    rows = list(csv.DictReader(io.StringIO(ringfence.ok("access", "report", "--format", "csv"))))
    alice = next(row for row in rows if row["principal"] == ALICE and row["role"] == "developer")
    assert "lease.request" in alice["used"].split() and "lease.end" in alice["unused"].split()
    whole = json.loads(ringfence.ok("access", "report", "--format", "json"))
    assert len(whole["bindings"]) == len(rows) and whole["policy_version"] >= 1
    markdown = ringfence.ok("access", "report").splitlines()
    assert sum(line.startswith("| ") for line in markdown) == len(rows) + 1
    assert ringfence("access", "report", "--format", "pdf").returncode == 2


def test_what_is_suggested_can_be_applied_and_takes_away_only_what_was_not_used(ringfence, developer, tmp_path):
    done = ringfence("access", "suggest", "--days", "30")
    assert done.returncode == 0 and "uses are recorded since" in done.stderr, done.stderr
    folder = tmp_path / "policy"
    ringfence.ok("policy", "show", ringfence.json("policy", "show")["version"], "--write", folder)
    # A rule that names the role which would be replaced: the patch would widen, and is not given.
    rule = folder / "speech.cedar"
    rule.write_text('forbid (principal in Holders::"developer", action == Action::"lease.request", '
                    'resource in Tenant::"acme/research/speech");\n')
    ringfence.ok("policy", "apply", folder, "--reason", "no leases for speech")
    wider = ringfence("access", "suggest", "--days", "30")
    assert wider.returncode == 6 and "lease.request at acme/research/speech" in wider.stderr, wider.stderr
    rule.unlink()
    ringfence.ok("policy", "apply", folder, "--reason", "as before")
    subprocess.run(["patch", "-s", "-p1", "-d", folder], input=done.stdout, text=True, check=True)
    ringfence.ok("policy", "apply", folder, "--reason", "least privilege")
    (mine,) = bindings(ringfence, ALICE)
    assert mine["role"] != "developer"
    ringfence.ok("run", "-t", "acme/research/vision", "--", "true", token=developer)
    assert bindings(ringfence, "olga@ops.example") == []
    ringfence.ok("token", "list")  # the administrator is still one
    again = ringfence.json("access", "suggest", "--days", "30")
    assert ALICE not in [one["principal"] for one in again["suggestions"]], "nothing more to narrow"
