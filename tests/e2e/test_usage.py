"""Goal: what `ringfence usage` says is what the audit log says, to the second, and only to those who may know.
Method: jobs of two tenants by two people; the sums are made again from `audit list` alone."""

import csv
import datetime
import io
import json

TENANTS = {"alice@acme.example": "acme/research/vision", "grace@globex.example": "globex/genomics/folding"}


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def from_the_log(ringfence):
    """GPU-seconds of each lease, by the rule in docs/usage.md and nothing else."""
    placed, ended = {}, {}
    for entry in ringfence.json("audit", "list", "--limit", "10000"):
        entry = entry.get("entry", entry)
        lease, state = entry.get("lease"), entry.get("detail", {}).get("state")
        if entry["action"] == "lease.place":
            placed[lease] = (seconds(entry["time"]), len(entry["gpus"]), entry["tenant"])
        elif entry["action"] == "lease.job_end" or (entry["action"] in ("lease.close", "lease.end") and state == "closed"):
            ended[lease] = min(seconds(entry["time"]), ended.get(lease, float("inf")))
    return {lease: (tenant, gpus * (ended[lease] - start)) for lease, (start, gpus, tenant) in placed.items()}


def test_the_sums_are_those_of_the_log(ringfence):
    tokens = {who: ringfence.token(who) for who in TENANTS}
    for who, tenant in TENANTS.items():
        ringfence.ok("run", "-t", tenant, "--", "sh", "-c", "sleep 0.4", token=tokens[who])
    ringfence.gpus_are_back()
    log = from_the_log(ringfence)
    assert len(log) >= 2
    by_lease = ringfence.json("usage", "--by", "lease")
    assert by_lease["whole"]
    assert {row["key"]: round(row["gpu_ms"] / 1000, 3) for row in by_lease["items"]} == {
        lease: round(used, 3) for lease, (_, used) in log.items()}
    for by in ("tenant", "principal", "gpu"):
        usage = ringfence.json("usage", "--by", by)
        assert usage["total"]["gpu_ms"] == sum(row["gpu_ms"] for row in usage["items"]) == by_lease["total"]["gpu_ms"]
        assert usage["total"]["energy_joules"] is None  # nothing measures it
    tenants = {row["key"]: row["gpu_ms"] for row in ringfence.json("usage")["items"]}
    for tenant in TENANTS.values():
        assert tenants[tenant] == round(1000 * sum(used for of, used in log.values() if of == tenant))

    rows = list(csv.DictReader(io.StringIO(ringfence.ok("usage", "--output", "csv"))))
    assert {row["tenant"]: round(float(row["gpu_seconds"]) * 1000) for row in rows} == tenants
    assert {row["energy_joules"] for row in rows} == {"unknown"}
    assert "total" in ringfence.ok("usage", "--by", "principal")

    # Who may know: alice her tenant's, a service its own leases, and neither the neighbour's.
    alice = ringfence.json("usage", token=tokens["alice@acme.example"])
    assert not alice["whole"] and {row["key"] for row in alice["items"]} == {"acme/research/vision"}
    nightly = ringfence.token("vision-nightly")
    assert ringfence.json("usage", token=nightly)["items"] == []
    ringfence.ok("run", "-t", "acme/research/vision", "--", "true", token=nightly)
    assert [row["key"] for row in ringfence.json("usage", "--by", "principal", token=nightly)["items"]] == ["vision-nightly"]

    # Nothing before the first lease; windows are halves of one whole.
    first = min(entry["time"] for entry in map(lambda e: e.get("entry", e), ringfence.json("audit", "list", "--limit", "10000")))
    assert ringfence.json("usage", "--to", first, "--from", "2020-01-01")["items"] == []


def test_what_is_wrong_is_said(ringfence):
    for words, what in ((("--by", "node"), "none of tenant, principal, gpu, lease"), (("--from", "yesterday"), "neither a time nor a span"),
                        (("--from", "2026-11-02", "--to", "2026-11-01"), "is not after from")):
        done = ringfence("usage", *words)
        assert done.returncode != 0 and what in done.stderr, done.stderr
    done = ringfence("gpu", "list", "--output", "csv")
    assert done.returncode == 2 and "prints no csv" in done.stderr
    assert json.loads(ringfence.ok("usage", "-o", "json"))
