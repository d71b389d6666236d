"""What the benchmarks share: a Ringfence of their own, runs of the load generator, the ledger."""

import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("RINGFENCE_BUILD_DIR", ROOT / "build" / "release")).resolve()
PROGRAM = BUILD / "ringfence"
LOAD = BUILD / "bench" / "load"
TENANT = "acme/research/vision"
LEDGER = ROOT / "bench" / "LEDGER.md"
SPECIFICATION = ROOT / "docs" / "specification.md"


class Ringfence:
    """`ringfence up` in a folder of its own, and its command line."""

    def __init__(self, state, environment=()):
        self.state = pathlib.Path(state)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("RINGFENCE_")}
        self.env.update({"RINGFENCE_STATE": str(state), "NO_COLOR": "1"}, **dict(environment))

    def ok(self, *words, **environment):
        done = subprocess.run([PROGRAM, *map(str, words)], env={**self.env, **environment}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"ringfence {' '.join(map(str, words))}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def json(self, *words):
        return json.loads(self.ok(*words, RINGFENCE_OUTPUT="json"))

    def load(self, *words):
        """Runs the load generator against it; one report for each rate."""
        return load("--state", self.state, *words)

    def pids(self):
        """{"server": pid, "agent": pid, "jailer": pid} of this instance."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                environment = (entry / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if not words[0] or (str(self.state) not in environment and
                                not any(str(self.state) in word for word in words)):
                continue
            if os.path.basename(words[0]) == "ringfence-jailer":
                found["jailer"] = int(entry.name)
            elif os.path.basename(words[0]) == "ringfence" and "server" in words[1:]:
                found["server"] = int(entry.name)
            elif os.path.basename(words[0]) == "ringfence" and "agent" in words[1:]:
                found["agent"] = int(entry.name)
        return found


@contextlib.contextmanager
def ringfence(**environment):
    """A running Ringfence, gone afterwards. Keyword arguments are variables of its environment."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that it is taken down then too
    state = tempfile.mkdtemp(prefix="ringfence-bench-", dir=os.environ.get("BENCH_DIR"))
    os.chmod(state, 0o755)
    instance = Ringfence(state, environment)
    try:
        instance.ok("up", "--detach", "--listen", "127.0.0.1:0")
        yield instance
    finally:
        with contextlib.suppress(RuntimeError):
            instance.ok("down")
        shutil.rmtree(state, ignore_errors=True)


def load(*words):
    done = subprocess.run([LOAD, *map(str, words), "-o", "json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"load {words}: {done.stderr}")
    return json.loads(done.stdout)


def resident_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def cpu_seconds(pid):
    """CPU time of a process so far: does not depend on what else the machine does, or little."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def spread(values, digits=1):
    """"median (least to most)"."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def machine():
    """What this machine is, never where it stands."""
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    kernel = ".".join(os.uname().release.split(".")[:2])
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                 "unknown CPU")
    return (f"{len(os.sched_getaffinity(0))} cores ({model}), {round(memory / 2**20)} GiB, Linux {kernel}, "
            f"load {os.getloadavg()[0]:.1f} at the end")


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short=10", "HEAD") + (" with changes" if git("status", "--porcelain", "--", "src") else "")


def record(title, command, rows):
    """Prints rows of (what, result, against, verdict[, key]). With LEDGER=1 they go into the ledger too, newest
    first, and what has a key into its place in the specification."""
    width = max(len(row[0]) for row in rows)
    for what, result, against, said, *_ in rows:
        print(f"{what:{width}}  {result}  |  {against}  |  {said}", flush=True)
    if os.environ.get("LEDGER") != "1":
        return
    lines = [f"## {datetime.date.today()} — {title}", "",
             f"*Machine* {machine()}. *Commit* {commit()}. *Command* `{command}`.", "",
             "| what | result | against, in the same run | verdict |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row[:4]) + " |" for row in rows]
    text = LEDGER.read_text()
    cut = text.find("\n## ") + 1
    LEDGER.write_text(text[:cut] + "\n".join(lines) + "\n\n" + text[cut:])
    text = SPECIFICATION.read_text()
    for _, result, against, said, *key in rows:
        if key:
            holds = "holds" if said.startswith("holds") else "**does not hold**"
            value = f"{result}{'' if against == '-' else f' ({against})'}: {holds}, {datetime.date.today()}"
            text = re.sub(rf"(<!--{key[0]}-->).*?(<!--/-->)", lambda found: found[1] + value + found[2], text)
    SPECIFICATION.write_text(text)


def cargo_peer(name):
    """Builds tests/peers/NAME, another implementation in Rust, and gives its path; None without a cargo or its crates."""
    target = ROOT / "build" / "peers" / f"cargo-{name}"
    if shutil.which("cargo") is None:
        print(f"no cargo: without tests/peers/{name}", flush=True)
        return None
    done = subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT / "tests" / "peers" / name,
                          env={**os.environ, "CARGO_TARGET_DIR": str(target)}, check=False)
    if done.returncode != 0:
        print(f"tests/peers/{name} does not build: without it", flush=True)
        return None
    return target / "release" / f"{name}-peer"


def verdict(holds, promise):
    return ("holds: " if holds else "**does not hold**: ") + promise


def need_root():
    if os.geteuid() != 0:
        sys.exit("error: a node needs root for its jailer\nhint: run this as root")
