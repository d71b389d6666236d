"""`ringfence doctor` beside a Ringfence that runs: what it holds itself is no fault, and nothing else is excused by it."""

import json
import shutil
import socket
import sqlite3
import subprocess


def port_check(ringfence, listen):
    done = ringfence("doctor", "--role", "server", "--listen", listen, "--output", "json")
    check = next(one for one in json.loads(done.stdout)["checks"] if one["id"] == "port.listen")
    return check["result"], check["evidence"], done.returncode


def test_an_address_is_excused_only_when_we_hold_it(ringfence):
    server = json.loads((ringfence.state / "cli" / "context.json").read_text())["server"]
    port = server.rsplit(":", 1)[1]
    for listen in (server, f"0.0.0.0:{port}"):
        result, evidence, code = port_check(ringfence, listen)
        assert (result, code) == ("ok", 0) and "held by the Ringfence that runs here" in evidence
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result, evidence, code = port_check(ringfence, f"127.0.0.1:{other.getsockname()[1]}")
        assert (result, code) == ("fail", 1) and "in use" in evidence
    for nowhere in (f"999.1.1.1:{port}", f"192.0.2.1:{port}"):
        assert port_check(ringfence, nowhere)[0] == "fail", nowhere


def server_checks(ringfence, **env):
    done = ringfence("doctor", "--role", "server", "--output", "json", env=env)
    return {one["id"]: one for one in json.loads(done.stdout)["checks"] if one["id"].startswith("server.")}


def test_a_policy_with_faults_and_records_too_new_are_in_the_way(ringfence, tmp_path):
    assert {one["result"] for one in server_checks(ringfence).values()} == {"ok"}
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "roles.yaml").write_text("kind: Roll\n")
    found = server_checks(ringfence, RINGFENCE_POLICY=str(tmp_path / "policy"))["server.policy"]
    assert found["result"] == "fail" and "locked out" in found["evidence"] and "policy check" in found["fix"]

    copy = tmp_path / "records.db"
    with sqlite3.connect(ringfence.state / "server" / "ringfence.db") as records, sqlite3.connect(copy) as to:
        records.backup(to)

    def with_schema(version, least):
        with sqlite3.connect(copy) as records:
            records.execute("UPDATE schema_version SET version = ?, least = ?", (version, least))
        found = server_checks(ringfence, RINGFENCE_DATABASE=str(copy))["server.database"]
        with sqlite3.connect(copy) as records:
            assert records.execute("SELECT version FROM schema_version").fetchall() == [(version,)]
        return found["result"]

    assert with_schema(999, 999) == "fail"
    assert with_schema(999, 1) == "ok"
    assert with_schema(1, 1) == "warn"
    shutil.rmtree(tmp_path)
    absent = server_checks(ringfence, RINGFENCE_DATABASE=str(copy))["server.database"]
    assert absent["result"] == "ok" and not copy.exists()


def test_up_on_a_full_disk_says_so(ringfence, tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0755", "full", tmp_path], check=True)
    try:
        done = ringfence("up", "--detach", "--state", tmp_path / "state")
        assert done.returncode != 0 and "is full" in done.stderr and "make room" in done.stderr, done.stderr
    finally:
        subprocess.run(["umount", tmp_path], check=True)
