"""A bare Debian that a test can boot, change and throw away."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "package-test"
# Beside what the package needs: an init, and what its recommendations and its tests use.
INCLUDE = "systemd,dbus,adduser,ca-certificates,logrotate,runc,procps"


def run(*words, **options):
    """Runs a command to its end; its output is in the error when it fails."""
    done = subprocess.run(
        [str(w) for w in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options
    )
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def mirror():
    """Where this machine's own apt gets Debian's packages from, and which release."""
    release = {}
    for line in pathlib.Path("/etc/os-release").read_text().splitlines():
        key, _, value = line.partition("=")
        release[key] = value.strip('"')
    codename = release["VERSION_CODENAME"]
    targets = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(ORIGIN) $(COMPONENT)")
    for line in targets.splitlines():
        words = line.split()
        if words[1:] == [codename, "Debian", "main"]:
            return codename, words[0]
    raise AssertionError("apt knows no source of " + codename)


def base(deb):
    """The root folder of a bare Debian with what `deb` depends on; made once, kept in build/."""
    depends = run("dpkg-deb", "--field", deb, "Depends").strip()
    name = hashlib.sha256(f"{INCLUDE} {depends}".encode()).hexdigest()[:16]
    folder = CACHE / f"base-{name}"
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.glob("base-*"):
        shutil.rmtree(old)
    making = CACHE / "making"
    shutil.rmtree(making, ignore_errors=True)
    codename, uri = mirror()
    run("debootstrap", "--variant=minbase", f"--include={INCLUDE}", codename, making, uri)
    run("chroot", making, "apt-get", "-q", "satisfy", "-y", "--no-install-recommends", depends,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    (making / "etc/machine-id").write_text(f"{name}{name}\n")  # or systemd takes it for a first boot
    making.rename(folder)
    return folder


class Machine:
    """A boot of the base. What it changes lies in a folder of its own and goes with it."""

    def __init__(self, deb, name):
        self.name = name
        self.base = base(deb)
        self.upper = pathlib.Path(tempfile.mkdtemp(prefix=f"ringfence-{name}-"))
        self.boot = None
        self.init = 0

    def start(self):
        self.log = open(self.upper / "boot.log", "w+", encoding="utf-8")
        self.boot = subprocess.Popen(
            [pathlib.Path(__file__).with_name("boot.sh"), self.base, self.upper, self.name],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
        )
        end = time.monotonic() + 120
        while time.monotonic() < end:
            assert self.boot.poll() is None, (self.upper / "boot.log").read_text()
            self.init = self.find_init()
            if self.init and self("systemctl", "is-system-running", check=False).strip() == "running":
                return self
            time.sleep(0.2)
        raise AssertionError("systemd did not come up\n" + self("systemctl", "--failed", check=False)
                             + (self.upper / "boot.log").read_text())

    def find_init(self):
        """The process that is systemd, once it is."""
        pids = [self.boot.pid]
        while pids:
            pid = pids.pop()
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "systemd":
                    return pid
                pids += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
            except OSError:
                pass
        return 0

    def __call__(self, *words, check=True, stdin=None):
        """Runs a command inside; returns what it printed."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w",
             "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
             "DEBIAN_FRONTEND=noninteractive", "NO_COLOR=1", *map(str, words)],
            input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
        )
        if check:
            assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{self.journal()}"
        return done.stdout

    def shell(self, script, check=True):
        return self("bash", "-euo", "pipefail", "-c", script, check=check)

    def journal(self):
        return self("journalctl", "--no-pager", "-n", "60", "-o", "cat", "-u", "ringfence-*", check=False)

    def put(self, source, path):
        """Copies a file of ours into it."""
        with open(source, "rb") as data:
            subprocess.run(
                ["nsenter", "-t", str(self.init), "-m", "-r", "dd", f"of={path}", "status=none"], stdin=data, check=True
            )

    def files(self):
        """Every path of its disk, but for what any use of a machine changes."""
        text = self.shell(
            "find / -xdev -mindepth 1 "
            "\\( -path /var/log/journal -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg "
            "-o -path /root -o -path /var/tmp -o -path /var/lib/systemd -o -path /var/lib/logrotate -o -path /.outside \\) -prune "
            "-o -not -name '*-' -printf '%p %U\\n' | sort"
        )
        return set(text.splitlines())

    def stop(self):
        if self.boot and self.boot.poll() is None:
            if self.init:
                os.kill(self.init, 9)  # ours: process 1 of the namespaces that boot.sh made
            else:
                self.boot.terminate()
            self.boot.wait(timeout=60)
        shutil.rmtree(self.upper, ignore_errors=True)
