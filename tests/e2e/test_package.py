"""The package as a file, and what is in it.

Goal: the same build gives the same package; it is a good Debian package; its services are as confined as
docs/install.md says; its programs, manual and completions work from where it puts them.
Method: lintian, systemd-analyze, man, three shells and the unpacked programs. What needs a machine to
install it on is in tests/package (`make package-test`).
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, ROOT, Ringfence

UNITS = ROOT / "deploy" / "systemd"


def run(*words, **options):
    done = subprocess.run(
        [str(w) for w in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make(folder):
    return pathlib.Path(run(ROOT / "scripts" / "package.sh", BUILD, folder).splitlines()[-1])


@pytest.fixture(scope="module")
def deb(tmp_path_factory):
    return make(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def tree():
    """What the package holds, unpacked where any user can read it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-package-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def unpacked(deb, tree):
    run("dpkg-deb", "-x", deb, tree)
    return tree


def test_the_same_build_gives_the_same_bytes(deb, tmp_path):
    again = make(tmp_path)
    assert again.name == deb.name
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(deb.read_bytes()).digest()


def test_control_has_what_dpkg_needs(deb):
    fields = run("dpkg-deb", "--field", deb)
    depends = re.search(r"^Depends: (.*)$", fields, re.M).group(1)
    for library in ("libc6", "libssl3", "libsqlite3-0", "libboost-json1.81.0", "libyaml-cpp0.7", "libseccomp2"):
        assert library in depends, depends
    assert "adduser" in depends
    conffiles = run("dpkg-deb", "--info", deb, "conffiles").split()
    assert "/etc/ringfence/ringfence.yaml" in conffiles and "/etc/ringfence/policy/admin.yaml" in conffiles
    listing = run("dpkg-deb", "--contents", deb)
    for line in listing.splitlines():
        mode, owner = line.split()[:2]
        assert owner == "root/root", line
        assert "s" not in mode and mode[8] != "w", line  # no set-user-id, nothing that others can write


def test_lintian_finds_nothing(deb):
    found = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", str(deb)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("name", ["ringfence-server", "ringfence-agent", "ringfence-node", "ringfence-assess"])
def test_units_are_as_confined_as_the_page_says(name):
    output = run("systemd-analyze", "security", "--offline=true", "--no-pager", UNITS / f"{name}.service")
    score = re.search(r"exposure level for \S+: ([0-9.]+)", output).group(1)
    if name in ("ringfence-server", "ringfence-agent"):
        assert float(score) < 2.0, output
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    said = re.search(rf"^\| `{name}` \| \S+ \| ([0-9.]+) \|", page, re.M).group(1)
    assert said == score, f"docs/install.md says {said}, systemd-analyze {score}"


def test_units_are_good_and_start_what_is_in_the_package(unpacked):
    """As systemd reads them, with the package's own programs in place."""
    root = unpacked
    for name in ("sysinit.target", "basic.target", "network-online.target", "multi-user.target", "shutdown.target"):
        path = root / "lib/systemd/system" / name
        path.write_text("[Unit]\nDescription=a stand-in\n")
    (root / "bin").mkdir(exist_ok=True)
    (root / "bin/kill").write_text("#!/bin/sh\n")
    (root / "bin/kill").chmod(0o755)
    checked = subprocess.run(
        ["systemd-analyze", "verify", f"--root={root}", "--man=no", "--recursive-errors=no",
         *(f"ringfence-{unit}.service" for unit in ("server", "agent", "node", "assess"))],
        capture_output=True, text=True, check=False,
    )
    complaints = [line for line in checked.stderr.splitlines() if "ringfence" in line]
    assert checked.returncode == 0 and complaints == [], checked.stderr


def test_manual_pages_are_clean(unpacked):
    pages = sorted((unpacked / "usr/share/man").glob("man*/*.gz"))
    assert len(pages) > 10
    for page in pages:
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"},
        )
        assert done.returncode == 0 and done.stderr == "", f"{page.name}: {done.stderr}"


SHELLS = {
    "bash": (
        "usr/share/bash-completion/completions/ringfence",
        ["bash", "--norc", "--noprofile", "-c"],
        'source "$0"; COMP_WORDS=("$1" lease l); COMP_CWORD=2; _ringfence; printf "%s\\n" "${COMPREPLY[@]}"',
    ),
    "zsh": (
        "usr/share/zsh/vendor-completions/_ringfence",
        ["zsh", "-f", "-c"],
        'autoload -Uz compinit; compinit -u -D; fpath=("${0:h}" $fpath); autoload -Uz _ringfence; '
        'autoload +X _ringfence; functions _ringfence; "$1" __complete -- lease l',
    ),
    "fish": (
        "usr/share/fish/vendor_completions.d/ringfence.fish",
        ["fish", "--no-config", "-c"],
        'set -x PATH (dirname $argv[2]) $PATH; source $argv[1]; complete -C "ringfence lease l"',
    ),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_load_and_complete(unpacked, shell, tmp_path):
    path, command, script = SHELLS[shell]
    assert shutil.which(shell), f"{shell} is not installed: scripts/setup.sh test"
    done = subprocess.run(
        [*command, script, str(unpacked / path), str(unpacked / "usr/bin/ringfence")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "RINGFENCE_CONFIG": "", "TERM": "dumb"},
        cwd=tmp_path,
    )
    assert done.returncode == 0 and "list" in done.stdout, done.stdout + done.stderr
    assert done.stderr == "", done.stderr


def test_shipped_configuration_and_policy_are_good(unpacked):
    ringfence = unpacked / "usr/bin/ringfence"
    config = unpacked / "etc/ringfence/ringfence.yaml"
    run(ringfence, "config", "check", "--config", config)
    run(ringfence, "policy", "check", unpacked / "etc/ringfence/policy")
    shown = json.loads(run(ringfence, "config", "show", "--config", config, "-o", "json"))
    values = {one["key"]: one["value"] for one in shown}
    assert values["state"] == "/var/lib/ringfence" and values["policy.folder"] == "/etc/ringfence/policy"


def test_the_unpacked_programs_run_a_job(unpacked):
    """The programs find each other, the simulated driver and the sample policy where they are installed."""
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")

    class Installed(Ringfence):
        program = unpacked / "usr/bin/ringfence"

        def __call__(self, *words, **options):
            env = self.environment(options.get("token"))
            return subprocess.run([self.program, *map(str, words)], env=env, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=120, check=False)

    state = unpacked / "state"
    instance = Installed(state)
    try:
        instance.up()
        if any(node["missing"] for node in instance.json("node", "list")):
            pytest.skip("this machine cannot run boxes")
        assert instance.ok("run", "-t", "acme/research/vision", "--", "echo", "installed") == "installed\n"
    finally:
        instance("down")
