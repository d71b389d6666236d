"""The package on a bare Debian, with systemd as process 1.

Goal: an operator who follows docs/install.md gets a running server and node; an upgrade keeps what they
wrote and what the services know; removing keeps it too; purging leaves nothing behind.
Method: the commands of docs/install.md itself, in a debootstrap root that is booted in namespaces.
"""

import json
import os
import pathlib
import re
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from machine import ROOT, Machine, run  # noqa: E402

BUILD = pathlib.Path(os.environ.get("RINGFENCE_BUILD_DIR", ROOT / "build" / "release"))


def wait_until(condition, what, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.3)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def package(folder, version=None):
    env = {**os.environ, **({"PACKAGE_VERSION": version} if version else {})}
    return pathlib.Path(run(ROOT / "scripts" / "package.sh", BUILD, folder, env=env).strip())


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    """An older package, whose configuration files differ a little, and this one."""
    folder = tmp_path_factory.mktemp("debs")
    new = package(folder)
    older = package(folder, "0.0.9")
    tree = folder / "tree"
    run("dpkg-deb", "-R", older, tree)
    with open(tree / "etc/ringfence/ringfence.yaml", "a", encoding="utf-8") as file:
        file.write("# a line that only the older package has\n")
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, older)
    return older, new


@pytest.fixture(scope="module")
def machine(debs):
    box = Machine(debs[1], "ringfence-package-test")
    try:
        box.start()
        for deb in debs:
            box.put(deb, f"/root/{deb.name}")
        box.shell("echo 127.0.0.1 ringfence.example >> /etc/hosts")
        yield box
    finally:
        box.stop()


def blocks(page):
    """The shell commands of a page, in order."""
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


def active(machine, *units):
    return all(machine("systemctl", "is-active", unit, check=False).strip() == "active" for unit in units)


def wait_until_healthy(machine):
    """Nothing wrong, and no GPU left to be scrubbed."""
    def healthy():
        try:
            status = json.loads(machine("ringfence", "status", "-o", "json", check=False))
        except ValueError:  # the server is away
            return False
        return status["healthy"] and status["gpus"]["total"] == status["gpus"]["free"]
    wait_until(healthy, "all to be healthy")


def main_pid(machine, unit):
    return machine("systemctl", "show", "-P", "MainPID", unit).strip()


ALL = ("ringfence-server", "ringfence-node", "ringfence-agent")


class TestLife:
    """In this order: install by the book, faults, upgrade, remove, install again, purge."""

    def test_installed_by_the_book(self, machine, debs):
        machine.before = machine.files()
        machine.shell(f"mkdir /root/install && mv /root/{debs[0].name} /root/install/")  # the older one
        commands = blocks(ROOT / "docs" / "install.md")
        assert len(commands) >= 5
        for block in commands:
            machine.shell("cd /root/install\n" + block)
        assert active(machine, *ALL), machine.journal()
        status = json.loads(machine("ringfence", "status", "-o", "json"))
        assert status["healthy"] and status["gpus"]["total"] == 8
        assert machine("ringfence", "run", "-t", "acme/research/vision", "--", "echo", "in a box") == "in a box\n"

    def test_services_off_until_enabled_and_files_where_they_belong(self, machine):
        assert "ringfence-agent" in machine("id", "ringfence-agent")
        owners = machine.shell("stat -c '%U %a %n' /var/lib/ringfence/server /var/lib/ringfence/node/agent "
                               "/var/lib/ringfence/node/jailer /etc/ringfence/policy")
        assert owners.splitlines() == [
            "ringfence 700 /var/lib/ringfence/server",
            "ringfence-agent 700 /var/lib/ringfence/node/agent",
            "root 700 /var/lib/ringfence/node/jailer",
            "root 755 /etc/ringfence/policy",
        ]
        users = machine.shell("ps -o user:20= -p $(systemctl show -P MainPID ringfence-server),"
                              "$(systemctl show -P MainPID ringfence-agent)").split()
        assert sorted(users) == ["ringfence", "ringfence-agent"]
        # What the kernel enforces on them, not what a file says.
        for unit in ("ringfence-server", "ringfence-agent"):
            facts = machine("cat", f"/proc/{main_pid(machine, unit)}/status")
            assert re.search(r"^CapBnd:\t0+$", facts, re.M), facts
            assert re.search(r"^NoNewPrivs:\t1$", facts, re.M) and re.search(r"^Seccomp:\t2$", facts, re.M)
        assert not machine.shell("ls /run/ringfence-node").strip()  # the agent took the only connection

    def test_logs_are_json_in_the_journal_with_priorities(self, machine):
        lines = machine("journalctl", "-u", "ringfence-server", "-o", "json", "--no-pager").splitlines()
        ours = [json.loads(line) for line in lines if '"_COMM":"ringfence"' in line]
        assert ours
        for entry in ours:
            line = json.loads(entry["MESSAGE"])
            assert line["process"] == "server"
            assert entry["PRIORITY"] == {"error": "3", "warning": "4", "info": "6", "debug": "7"}[line["level"]]

    def test_reload_keeps_the_process_and_takes_the_policy(self, machine):
        before = main_pid(machine, "ringfence-server")
        machine.shell("sed -i 's/^  gpus: 6/  gpus: 5/' /etc/ringfence/policy/quotas.yaml")
        machine("systemctl", "reload", "ringfence-server")
        assert main_pid(machine, "ringfence-server") == before
        assert "policy_reloaded" in machine("journalctl", "-u", "ringfence-server", "-o", "cat", "--no-pager")

    @pytest.mark.parametrize("victim", ALL)
    def test_killed_services_come_back(self, machine, victim):
        before = {unit: main_pid(machine, unit) for unit in ALL}
        machine("kill", "-9", before[victim])
        wait_until(lambda: main_pid(machine, victim) not in ("0", before[victim]) and active(machine, *ALL),
                   f"{victim} to come back")
        if victim != "ringfence-server":  # one never goes on without the other
            for unit in ("ringfence-node", "ringfence-agent"):
                assert main_pid(machine, unit) != before[unit]
        wait_until_healthy(machine)
        assert machine("ringfence", "run", "-t", "acme/research/vision", "--", "echo", "again") == "again\n"

    def test_stop_stops_both_and_leaves_no_box(self, machine):
        wait_until_healthy(machine)
        machine("ringfence", "run", "-t", "acme/research/vision", "--detach", "--", "sleep", "1000")
        wait_until(lambda: machine.shell("pgrep -c sleep || true").strip() != "0", "the job to run")
        machine("systemctl", "stop", "ringfence-node")
        assert not active(machine, "ringfence-node") and not active(machine, "ringfence-agent")
        assert machine.shell("pgrep -x sleep || true").strip() == ""
        assert machine("systemctl", "is-failed", "ringfence-node", "ringfence-agent", check=False).split() == [
            "inactive", "inactive"]
        machine("systemctl", "start", "ringfence-node")
        wait_until_healthy(machine)
        assert active(machine, *ALL)

    def test_upgrade_keeps_state_and_edits(self, machine, debs):
        size = json.loads(machine("ringfence", "status", "-o", "json"))["audit"]["entries"]
        machine.shell("echo '# an edit of mine' >> /etc/ringfence/ringfence.yaml")
        before = {unit: main_pid(machine, unit) for unit in ALL}
        machine("apt-get", "install", "-y", "-o", "Dpkg::Options::=--force-confold", f"/root/{debs[1].name}")
        assert "an edit of mine" in machine("cat", "/etc/ringfence/ringfence.yaml")
        assert "gpus: 5" in machine("cat", "/etc/ringfence/policy/quotas.yaml")
        wait_until_healthy(machine)
        assert main_pid(machine, "ringfence-server") != before["ringfence-server"]
        assert main_pid(machine, "ringfence-node") == before["ringfence-node"]  # its jobs would end
        after = json.loads(machine("ringfence", "status", "-o", "json", check=False))["audit"]["entries"]
        assert after > size
        machine("ringfence", "audit", "verify")

    def test_logrotate_takes_the_file(self, machine):
        machine.shell("mkdir -p /var/log/ringfence && echo line > /var/log/ringfence/server.log")
        machine("logrotate", "-f", "/etc/logrotate.d/ringfence")
        assert machine.shell("cat /var/log/ringfence/server.log.1") == "line\n"
        assert machine.shell("cat /var/log/ringfence/server.log") == ""

    def test_remove_keeps_state_and_installing_again_goes_on(self, machine, debs):
        machine("apt-get", "remove", "-y", "ringfence")
        assert machine.shell("pgrep -f '^(/usr/bin/ringfence|ringfence-jailer)' || true").strip() == ""
        machine.shell("test -f /var/lib/ringfence/server/ringfence.db && test -f /etc/ringfence/ringfence.yaml "
                      "&& getent passwd ringfence && ! command -v ringfence")
        machine("apt-get", "install", "-y", f"/root/{debs[1].name}")
        machine("systemctl", "start", "ringfence-server")
        machine("ringfence", "audit", "verify")

    def test_purge_leaves_nothing(self, machine):
        machine("apt-get", "purge", "-y", "ringfence")
        left = sorted(machine.files() - machine.before)
        assert [path for path in left if "/root/" not in path] == []
        assert machine.shell("getent passwd ringfence ringfence-agent || true") == ""
        assert machine("systemctl", "list-unit-files", "ringfence*", "--no-legend", check=False).strip() == ""


def test_a_node_that_has_not_joined_says_what_to_do(debs):
    box = Machine(debs[1], "ringfence-package-test2")
    try:
        box.start()
        box.put(debs[1], "/root/ringfence.deb")
        box("apt-get", "install", "-y", "/root/ringfence.deb")
        for unit in ("ringfence-server", "ringfence-node"):  # nothing starts by itself
            assert box("systemctl", "is-enabled", unit, check=False).strip() == "disabled"
            assert box("systemctl", "is-active", unit, check=False).strip() == "inactive"
        box("systemctl", "start", "ringfence-node", check=False)
        said = box("journalctl", "-u", "ringfence-node", "-o", "cat", "--no-pager")
        assert "has not joined" in said and "/etc/ringfence/join-token" in said
        assert box("systemctl", "is-active", "ringfence-node", check=False).strip() == "failed"
        box("systemctl", "start", "ringfence-server")  # with the package's own configuration and policy
        box("ringfence", "policy", "check")
    finally:
        box.stop()
