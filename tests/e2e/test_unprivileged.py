"""Goal: where a machine lacks what a box needs, Ringfence starts all the same, says what is missing
and how to mend it, and refuses to run a job rather than run it unprotected.

Method: `up` as an ordinary user.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, PROGRAM

NOBODY = 54321  # an id that nobody has


def as_nobody(state, *words):
    def drop():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    return subprocess.run([PROGRAM, *words], env={"PATH": os.environ["PATH"], "RINGFENCE_STATE": str(state), "NO_COLOR": "1"},
                          preexec_fn=drop, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)


def test_up_without_root():
    reachable = all(parent.stat().st_mode & 0o001 for parent in BUILD.resolve().parents)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-e2e-"))
    os.chmod(folder, 0o777)
    program_folder = BUILD
    if not reachable:  # a clone in a private folder: give the user a copy of the programs
        program_folder = folder / "build"
        program_folder.mkdir()
        for name in ("ringfence", "ringfence-jailer", "ringfence-worker", "ringfence-init",
                     "ringfence-unpack", "ringfence-resolve"):
            shutil.copy(BUILD / name, program_folder / name)
        shutil.copytree(BUILD / "sim" / "lib", program_folder / "sim" / "lib")
        shutil.copytree(BUILD / "content", program_folder / "content")
    global PROGRAM
    PROGRAM = program_folder / "ringfence"
    state = folder / "state"
    try:
        up = as_nobody(state, "up", "--detach", "--listen", "127.0.0.1:0")
        assert up.returncode == 0, up.stdout + up.stderr
        assert "root" in up.stdout, up.stdout
        status = as_nobody(state, "status", "--output", "json")
        assert status.returncode == 1
        problems = json.loads(status.stdout)["problems"]
        assert any("cannot run boxes" in one["what"] and "root" in one["what"] for one in problems), problems
        run = as_nobody(state, "run", "-t", "acme/research/vision", "--", "true")
        assert run.returncode == 5, run.stdout + run.stderr
        assert "root" in run.stderr, run.stderr
        assert json.loads(as_nobody(state, "lease", "list", "--all", "--output", "json").stdout) == []
        assert as_nobody(state, "audit", "verify").returncode == 0
    finally:
        as_nobody(state, "down")
        shutil.rmtree(folder, ignore_errors=True)
