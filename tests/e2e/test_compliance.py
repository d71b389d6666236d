"""Goal: OSCAL reports have the shape that OSCAL 1.1.2 demands and the same ids in every run; a package of evidence can be
verified without Ringfence, and a changed byte in it is found.

Method: the real command line on prepared roots and against a running server; the shape is written down here by hand from the
published model; the package is judged by verify_evidence.py, which shares nothing with the product.
"""

import base64
import hashlib
import json
import re
import subprocess
import tarfile

import jsonschema
import pytest

from conftest import PROGRAM, ROOT
from verify_evidence import verify

UUID = {"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[45][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"}
TOKEN = {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9._-]*$"}
LINE = {"type": "string", "pattern": r"^\S(.*\S)?$"}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}


def a_list(item):
    return {"type": "array", "minItems": 1, "items": item}


def an_object(required, optional=None):
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required),
            "additionalProperties": False}


PROPS = a_list(an_object({"name": TOKEN, "ns": LINE, "value": LINE}))
ORIGIN = an_object({"actors": a_list(an_object({"type": {"enum": ["tool", "assessment-platform", "party"]}, "actor-uuid": UUID}))})
SEEN = a_list(an_object({"observation-uuid": UUID}))
METADATA = an_object({"title": LINE, "last-modified": TIME, "version": LINE, "oscal-version": {"const": "1.1.2"}})
COMPONENT = an_object({"uuid": UUID, "type": LINE, "title": LINE, "description": LINE, "status": an_object({"state": {
    "enum": ["under-development", "operational", "disposition", "other"]}})})
OBSERVATION = an_object(
    {"uuid": UUID, "description": LINE, "methods": a_list({"enum": ["EXAMINE", "INTERVIEW", "TEST", "UNKNOWN"]}), "collected": TIME},
    {"title": LINE, "props": PROPS, "types": a_list(TOKEN), "origins": a_list(ORIGIN), "expires": TIME,
     "subjects": a_list(an_object({"subject-uuid": UUID, "type": {"enum": ["component", "inventory-item"]}})),
     "relevant-evidence": a_list(an_object({"description": LINE}))})
RISK = an_object(
    {"uuid": UUID, "title": LINE, "description": LINE, "statement": LINE,
     "status": {"enum": ["open", "investigating", "remediating", "deviation-requested", "deviation-approved", "closed"]}},
    {"props": PROPS, "origins": a_list(ORIGIN), "related-observations": SEEN,
     "characterizations": a_list(an_object({"origin": ORIGIN, "facets": a_list(an_object({"name": TOKEN, "system": LINE, "value": LINE}))})),
     "remediations": a_list(an_object({"uuid": UUID, "lifecycle": {"enum": ["recommendation", "planned", "completed"]}, "title": LINE,
                                       "description": LINE}))})
FINDING = an_object(
    {"uuid": UUID, "title": LINE, "description": LINE, "target": an_object({
        "type": {"enum": ["statement-id", "objective-id"]}, "target-id": TOKEN,
        "status": an_object({"state": {"enum": ["satisfied", "not-satisfied"]}, "reason": {"enum": ["pass", "fail", "other"]}},
                            {"remarks": LINE})})},
    {"props": PROPS, "origins": a_list(ORIGIN), "related-observations": SEEN, "related-risks": a_list(an_object({"risk-uuid": UUID}))})
DEFINITIONS = an_object({"components": a_list(COMPONENT)})
RESULT = an_object(
    {"uuid": UUID, "title": LINE, "description": LINE, "start": TIME,
     "reviewed-controls": an_object({"control-selections": a_list(an_object({"include-controls": a_list(an_object({"control-id": TOKEN}))}))})},
    {"end": TIME, "local-definitions": DEFINITIONS, "observations": a_list(OBSERVATION), "risks": a_list(RISK),
     "findings": a_list(FINDING), "remarks": LINE})
ASSESSMENT_RESULTS = an_object({"assessment-results": an_object(
    {"uuid": UUID, "metadata": METADATA, "import-ap": an_object({"href": {"type": "string", "pattern": "^#"}}), "results": a_list(RESULT)},
    {"back-matter": an_object({"resources": a_list(an_object({"uuid": UUID}, {
        "title": LINE, "description": LINE, "rlinks": a_list(an_object({"href": LINE}))}))})})})
POAM = an_object({"plan-of-action-and-milestones": an_object(
    {"uuid": UUID, "metadata": METADATA, "poam-items": a_list(an_object({"title": LINE, "description": LINE}, {
        "uuid": UUID, "props": PROPS, "related-observations": SEEN, "related-risks": a_list(an_object({"risk-uuid": UUID}))}))},
    {"system-id": an_object({"id": LINE}, {"identifier-type": LINE}), "local-definitions": DEFINITIONS,
     "observations": a_list(OBSERVATION), "risks": a_list(RISK)})})


def report(root, kind, *words):
    done = subprocess.run([PROGRAM, "comply", "report", "--format", kind, "--root", ROOT / "tests/roots" / root, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ids(document):
    """Every uuid that is defined, and every one that is referred to."""
    text = json.dumps(document)
    return set(re.findall(r'"uuid": "([^"]+)"', text)), set(re.findall(r'"[a-z]+-uuid": "([^"]+)"', text))


@pytest.mark.parametrize("root", ["bad", "good"])
@pytest.mark.parametrize("kind,shape", [("oscal-ar", ASSESSMENT_RESULTS), ("oscal-poam", POAM)])
def test_oscal_has_its_shape_and_the_same_ids_again(root, kind, shape):
    first = json.loads(report(root, kind))
    jsonschema.validate(first, shape)
    made, referred = ids(first)
    assert referred <= made
    assert ids(json.loads(report(root, kind))) == (made, referred)


def test_a_report_names_only_the_baselines_controls():
    vectors = ROOT / "tests/vectors/oscal"
    profile = vectors / "NIST_SP-800-53_rev5_LOW-baseline_profile.json"
    low = set(json.loads(profile.read_text())["profile"]["imports"][0]["include-controls"][0]["with-ids"])
    document = json.loads(report("bad", "oscal-ar", "--framework", "nist-800-53", "--catalog", vectors / "low_catalog_ids.json",
                                 "--profile", profile))
    [result] = document["assessment-results"]["results"]
    [selection] = result["reviewed-controls"]["control-selections"]
    reviewed = {one["control-id"] for one in selection["include-controls"]}
    left_out = set(result["remarks"].split(": ")[1].split(", "))
    assert reviewed | left_out == low and not reviewed & left_out


def test_reports_for_people():
    assert report("bad", "markdown").startswith("# Controls of gpu-bad-1")
    html = report("bad", "html")
    from_elsewhere = re.findall(r"<script|(?:href|src)=|url\(|@import", html)
    assert html.startswith("<!doctype html>") and not from_elsewhere, from_elsewhere
    assert len(json.loads(report("bad", "json"))["frameworks"]) == 3


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    """A signing key as openssl makes it, and its public half."""
    folder = tmp_path_factory.mktemp("key")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / "key.pem"], check=True)
    subprocess.run(["openssl", "pkey", "-in", folder / "key.pem", "-pubout", "-out", folder / "public.pem"], check=True)
    return folder


@pytest.fixture(scope="module")
def package(ringfence, key, tmp_path_factory):
    """Evidence of a cluster on which a job ran and two walls were attacked."""
    ringfence.ok("run", "--tenant", "acme/research/vision", "--gpus", "1", "--", "true")
    ringfence.gpus_are_back()
    ringfence.ok("prove", "--probe", "ptrace", "--probe", "host-files")
    path = tmp_path_factory.mktemp("evidence") / "evidence.tar"
    ringfence.ok("evidence", "export", "--out", path, "--key", key / "key.pem")
    return path


def test_a_running_cluster_proves_some_controls(ringfence, package):
    shown = ringfence.json("comply", "show", "au-3", "--checks", ROOT / "content/checks")
    assert shown["status"] == "proven" and shown["audit"][0]["newest"]["proven"], shown
    probes = {one["name"]: one["results"] for one in ringfence.json("comply", "show", "sc-39")["probes"]}
    assert probes["ptrace"][0]["result"] == "held" and probes["setns"] == []


def test_the_package_is_verified_without_us(ringfence, package, key):
    found = verify(package, (key / "public.pem").read_bytes(), ringfence.json("audit", "keys")["log"])
    assert found["problems"] == [] and found["signed"] and found["recorded"], found
    assert found["files"] > 20 and found["proofs"] >= 5, found
    assert found["statements"] >= 5, "an attack and its control of each probe, and a receipt"
    with tarfile.open(package) as tar:
        assert any("/receipt-" in name for name in tar.getnames())
    ours = ringfence.json("evidence", "verify", package, "--signer", key / "public.pem")
    assert (ours["files"], ours["proofs"], ours["statements"]) == (found["files"], found["proofs"], found["statements"]), ours
    assert "by " in ours["recorded"] and ours["signer"]


def test_openssl_and_sha256sum_alone(package, tmp_path):
    """The commands of VERIFY.md, as they stand there."""
    subprocess.run(["tar", "-xf", package, "-C", tmp_path], check=True)
    page = (tmp_path / "VERIFY.md").read_text()
    commands = [block for block in re.findall(r"(?:^    .*\n)+", page, re.M) if "sha256sum" in block or "openssl" in block]
    assert len(commands) == 3
    for block in commands:
        subprocess.run(["sh", "-euc", block], cwd=tmp_path, check=True)
    (tmp_path / "audit/checkpoint").write_text((tmp_path / "audit/checkpoint").read_text().replace("\n", "\n1", 1))
    assert subprocess.run(["sh", "-euc", commands[2]], cwd=tmp_path, check=False, capture_output=True).returncode != 0


def test_a_changed_byte_is_found(ringfence, package, tmp_path):
    """In files of every kind, by both verifiers; also where the manifest was made to fit again."""
    folder = tmp_path / "package"
    folder.mkdir()
    subprocess.run(["tar", "-xf", package, "-C", folder], check=True)
    assert verify(folder)["problems"] == []
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in paths[:: max(1, len(paths) // 5)]:
        good = path.read_bytes()
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        assert verify(folder)["problems"], path
        path.write_bytes(bytes([good[0] ^ 1]) + good[1:])
        assert ringfence("evidence", "verify", folder).returncode == 1, path
        path.write_bytes(good)
    proof = next(path for path in paths if path.parent.name == "proofs")
    document = json.loads(proof.read_text())
    entry = base64.b64decode(document["entry"]).replace(b'"allow"', b'"deny"').replace(b'"ok"', b'"no"')
    proof.write_text(json.dumps({**document, "entry": base64.b64encode(entry).decode()}, separators=(",", ":"), sort_keys=True))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}" for path in paths
             if not path.name.startswith("MANIFEST")]
    (folder / "MANIFEST.sha256").write_text("\n".join(sorted(lines, key=lambda line: line[66:])) + "\n")
    (folder / "MANIFEST.sig").unlink()
    assert {problem.split("/")[0].split(":")[0] for problem in verify(folder)["problems"]} == {"audit", "MANIFEST.proof.json"}
    done = ringfence("evidence", "verify", folder)
    assert done.returncode == 1 and "audit/proofs" in done.stdout, done.stdout
