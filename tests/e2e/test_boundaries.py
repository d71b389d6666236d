"""Goal: what policy says lies between two tenants is said with file and line, holds where leases are placed, and a folder that
contradicts itself changes nothing. The map shows who is where.
Method: one node; boundaries are written into its policy folder and reloaded, one after the other."""

import subprocess

import pytest

from conftest import PROGRAM, wait_until

HEAD = "apiVersion: ringfence.dev/v1\nkind: Boundary\nmetadata: {name: %s}\nspec: %s\n"


@pytest.fixture
def boundary(ringfence):
    """Puts boundaries into extra.yaml, and takes them out again."""
    file = ringfence.state / "policy" / "extra.yaml"

    def put(*specs):
        file.write_text("---\n".join(HEAD % (f"extra-{number}", spec) for number, spec in enumerate(specs)))
        return ringfence("policy", "reload")

    yield put
    file.unlink(missing_ok=True)
    ringfence.ok("policy", "reload")


def run(ringfence, tenant, token, *words):
    return ringfence("run", "-t", tenant, "--", *(words or ("true",)), token=token)


def test_who_is_kept_from_whom_and_why(ringfence, developer, boundary):
    shown = ringfence.json("boundary", "show", "acme/research/vision", "globex/trading/pricing")
    assert shown["least"] == "gpu" and "boundaries.yaml:6" in shown["reason"]
    text = ringfence.ok("boundary", "show", "acme/research", "acme/finance", "--policy", ringfence.state / "policy")
    assert "time" in text and "boundaries.yaml:24" in text
    assert ringfence("boundary", "show", "globex/genomics", "globex/trading", token=developer).returncode != 0
    assert ringfence("boundary", "show", "acme", "acmee").returncode != 0

    # Proven within a time: this node never was.
    assert boundary("{tenant: acme/research, provenWithin: 1h}").returncode == 0
    refused = run(ringfence, "acme/research/vision", developer)
    assert refused.returncode != 0
    assert "never proven" in refused.stderr and "extra.yaml:1" in refused.stderr, refused.stderr
    assert run(ringfence, "globex/genomics/folding", ringfence.token("grace@globex.example")).returncode == 0

    # A conflict of interest, and NVLink neighbours: as long as the other one is there.
    ringfence.gpus_are_back()
    grace = ringfence.token("grace@globex.example")
    job = subprocess.Popen([PROGRAM, "run", "-t", "globex/genomics/folding", "--", "sleep", "60"], env=ringfence.environment(grace),
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        lease = wait_until(lambda: next((one for one in ringfence.json("lease", "list") if one["state"] == "active"), None), "the job")
        assert boundary("{between: [acme, globex], sharing: never}").returncode == 0
        refused = run(ringfence, "acme/research/vision", developer)
        assert refused.returncode != 0 and "conflict of interest between acme and globex (extra.yaml:1)" in refused.stderr
        assert "earliest release by" in refused.stderr and "free" in refused.stderr
        assert boundary("{between: departments, nvlink: one-tenant}").returncode == 0
        refused = run(ringfence, "acme/research/vision", developer)
        assert refused.returncode != 0 and "NVLink" in refused.stderr and "extra.yaml:1" in refused.stderr

        drawn = ringfence.json("gpu", "map")
        held = [gpu for node in drawn["nodes"] for gpu in node["gpus"] if gpu["mark"] == "leased"]
        assert [(gpu["tenant"], gpu["lease"], gpu["letter"]) for gpu in held] == [("globex/genomics/folding", lease["id"], "A")]
        assert drawn["nodes"][0]["proof"] == "unproven"
        picture = ringfence.ok("gpu", "map")
        assert "[AAAA]" in picture and "[....]" in picture and "unproven" in picture and "\x1b" not in picture
        # Somebody else's tenant has no name for those who may not see it.
        assert "[****]" in ringfence.ok("gpu", "map", token=developer)
    finally:
        ringfence("lease", "end", lease["id"])
        job.wait(60)


def test_what_contradicts_itself_changes_nothing(ringfence, boundary):
    before = ringfence.json("policy", "show")["digest"]
    refused = boundary("{between: departments, least: gpu}", "{between: [acme, globex], least: mig}")
    assert refused.returncode != 0
    assert "extra.yaml:6" in refused.stderr and "extra.yaml:1, which says gpu" in refused.stderr, refused.stderr
    assert ringfence.json("policy", "show")["digest"] == before
