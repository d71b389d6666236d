"""Goal: the kernel refuses what a tenant in a box must not do.

Method: attacks from inside real boxes. Each prints whether it got through; none may.
"""

import os
import subprocess
import textwrap

import pytest

from conftest import PROGRAM, wait_until

VISION = ("-t", "acme/research/vision")

ATTACKS = {
    "mknod of another GPU": "mknod /tmp/gpu c 195 7",
    "mknod of a disk": "mknod /tmp/disk b 8 0",
    "a mount": "mount -t tmpfs none /tmp",
    "a new user namespace": "unshare -U true",
    "a new mount namespace": "unshare -m true",
    "writing to the root": "touch /usr/bin/mine",
    "writing to /etc": "echo x >> /etc/passwd",
    "the host's shadow file": "cat /etc/shadow",
    "the kernel's memory": "cat /dev/mem",
    "a sysctl": "echo 1 > /proc/sys/kernel/panic",
    "the host's processes": "test $(ls -d /proc/[0-9]* | wc -l) -gt 20",
    "a cgroup": "mkdir /sys/fs/cgroup/devices/mine || mkdir /sys/fs/cgroup/mine",
    "a TCP connection": "timeout 3 bash -c 'echo > /dev/tcp/127.0.0.1/22'",
    "a metadata service": "timeout 3 bash -c 'echo > /dev/tcp/169.254.169.254/80'",
    "ptrace": "python3 -c \"import ctypes,sys; sys.exit(0 if ctypes.CDLL(None).ptrace(0,0,0,0)==0 else 1)\"",
    "a keyring": "python3 -c \"import ctypes,sys; sys.exit(0 if ctypes.CDLL(None).syscall(250,0,-3,0)>=0 else 1)\"",
    "becoming root by su": "su -c true",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attack(ringfence, developer, name):
    done = ringfence("run", *VISION, "--", "sh", "-c", f"if {ATTACKS[name]}; then echo GOT THROUGH; fi; echo tried",
                     token=developer)
    assert "tried" in done.stdout, done.stdout + done.stderr
    assert "GOT THROUGH" not in done.stdout, done.stdout + done.stderr


def test_the_box_has_no_capabilities_and_no_new_privileges(ringfence, developer):
    done = ringfence("run", *VISION, "--", "grep", "-E", "^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):",
                     "/proc/self/status", token=developer)
    facts = dict(line.split(":\t") for line in done.stdout.splitlines())
    assert {facts[f"Cap{c}"] for c in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2"


def test_two_tenants_share_nothing(ringfence, developer):
    grace = ringfence.token("grace@globex.example")
    victim = ringfence.ok("run", "-t", "globex/genomics/folding", "--detach", "--", "sh", "-c",
                          "echo secret > /tmp/secret; echo ready; sleep 300", token=grace).strip()
    wait_until(lambda: "ready" in ringfence.ok("lease", "logs", victim, token=grace), "the victim")
    [gpu] = ringfence.json("lease", "show", victim)["gpus"]
    spy = ringfence("run", *VISION, "--", "sh", "-c",
                    f"ls /tmp /dev/shm; ls /run/ringfence/driver/memory; ps ax 2>/dev/null; cat /proc/*/environ | tr '\\0' '\\n'",
                    token=developer)
    assert "secret" not in spy.stdout and gpu not in spy.stdout and victim not in spy.stdout
    ringfence.ok("lease", "end", victim, token=grace)


def test_a_fork_bomb_is_contained(ringfence, developer):
    done = ringfence("run", *VISION, "--pids", "32", "--timeout", "20s", "--", "sh", "-c",
                     "for i in $(seq 200); do sleep 30 & done; echo spawned", token=developer)
    assert done.returncode != 0 or "fork" in done.stderr.lower() or "Resource" in done.stderr
    assert ringfence.ok("run", *VISION, "--", "echo", "fine", token=developer) == "fine\n"


def test_a_machine_with_something_mounted_beneath_usr(tmp_path):
    """As drivers come that are a file system of their own: a box has it too, and can write nowhere in it."""
    script = textwrap.dedent("""
        set -e
        mount -t tmpfs none /usr/local/games
        echo from-the-mount > /usr/local/games/said
        chmod 1777 /usr/local/games
        "$0" up --detach --listen 127.0.0.1:0 > /dev/null
        trap '"$0" down > /dev/null' EXIT
        "$0" run -t acme/research/vision -- sh -c '
          cat /usr/local/games/said; if touch /usr/local/games/mine; then echo GOT THROUGH; fi; echo tried'
    """)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")}
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, PROGRAM], text=True, capture_output=True, timeout=180,
                          env={**environment, "RINGFENCE_STATE": str(tmp_path / "state"), "RINGFENCE_NODE_ASSESS_EVERY": "off"},
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from-the-mount" in done.stdout and "tried" in done.stdout, done.stdout + done.stderr
    assert "GOT THROUGH" not in done.stdout, done.stdout + done.stderr
