"""Goal: what policy says lies between two tenants is said with file and line, holds where leases are placed, and a folder that
contradicts itself changes nothing. The map shows who is where.
Method: one node; boundaries are written into its policy folder and reloaded, one after the other."""

import os
import signal
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
        assert boundary("{between: [acme, globex/genomics], sharing: never}").returncode == 0
        refused = run(ringfence, "acme/research/vision", developer)
        assert refused.returncode != 0 and "conflict of interest between acme and globex/genomics (extra.yaml:1)" in refused.stderr
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


def waiting(ringfence):
    """The leases in the queue, the next one first."""
    return sorted(ringfence.json("lease", "list", "--lease-state", "queued"), key=lambda one: one["queue_position"])


def test_who_must_wait_is_served_in_the_order_of_asking(ringfence, developer, boundary):
    grace = ringfence.token("grace@globex.example")
    assert boundary("{between: [acme, globex/genomics], sharing: never}").returncode == 0
    holder = ringfence.ok("run", "-d", "-t", "globex/genomics/folding", "--", "sleep", "300", token=grace).strip()

    def start(*words):
        return subprocess.Popen([PROGRAM, "run", "-t", "acme/research/vision", "--wait=10m", "--", *words],
                                env=ringfence.environment(developer), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    first = start("echo", "my turn")
    queue = wait_until(lambda: waiting(ringfence), "the first to wait")
    assert "conflict of interest" in queue[0]["reason"] and "earliest release by" in queue[0]["reason"]
    second = ringfence.ok("run", "-d", "-t", "acme/research/vision", "--wait", "--", "true", token=developer).strip()
    third = start("true")
    queue = wait_until(lambda: len(waiting(ringfence)) == 3 and waiting(ringfence), "all three to wait")
    assert [one["queue_position"] for one in queue] == [1, 2, 3] and queue[1]["id"] == second
    assert "queued #2" in ringfence.ok("lease", "list")
    # Nobody overtakes: neither who does not wait, nor who could be beside the holder.
    late = ringfence("run", "-t", "globex/genomics/folding", "--", "true", token=grace)
    assert late.returncode != 0 and "which waits longer" in late.stderr and "--wait" in late.stderr, late.stderr

    # The queue outlives the server; whoever follows a lease finds it again.
    for pid in ringfence.pid_of("ringfence", "server"):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: ringfence("lease", "list").returncode == 0, "the server")
    assert [one["id"] for one in waiting(ringfence)] == [one["id"] for one in queue]

    # Out again: by Ctrl-C, and by `lease end`.
    third.send_signal(signal.SIGINT)
    assert third.wait(60) == 130, third.communicate()
    ringfence.ok("lease", "end", second, token=developer)
    assert [one["id"] for one in waiting(ringfence)] == [queue[0]["id"]]
    assert "while it waited" in ringfence.json("lease", "show", second)["reason"]

    ringfence.ok("lease", "end", holder)
    out, err = first.communicate(timeout=120)
    assert (first.returncode, out) == (0, "my turn\n"), err
    assert "number 1 in the queue" in err
    actions = [entry.get("entry", entry)["action"] for entry in ringfence.json("audit", "list", "--lease", queue[0]["id"])]
    assert {"lease.request", "lease.queue", "lease.place", "lease.job_end"} <= set(actions)
