#!/usr/bin/python3
"""A whole assessment of a node with the metadata of 100 containers, and all bulletins against an inventory of 1,000 nodes.

The node is the badly kept one of tests/roots with 100 copies of its container, each with another name; the bulletins are those of
`shared/data/bulletins`, the inventory has drivers, toolkits and DCGM of 40 versions each.

    bench/assess.py [--program FILE] [--rounds N]
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("RINGFENCE_SHARED", ROOT.parent / "shared"))


def measured(words, rounds):
    """Seconds by the clock and of the processor, and the most KiB resident: the medians."""
    runs = []
    for _ in range(rounds):
        start = time.monotonic()
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, words
        runs.append((time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss))
    return [statistics.median(column) for column in zip(*runs)]


def node_with_containers(folder, count):
    root = folder / "root"
    shutil.copytree(ROOT / "tests" / "roots" / "bad", root, symlinks=True)
    containers = root / "var/lib/docker/containers"
    for number in range(count):
        copy = containers / f"{number:064x}"
        shutil.copytree(containers / "c1", copy)
        config = json.loads((copy / "config.v2.json").read_text())
        config["Name"] = f"/job-{number}"
        (copy / "config.v2.json").write_text(json.dumps(config))
    return root


def inventory(folder, nodes):
    lines = ["node,product,platform,version"]
    for number in range(nodes):
        lines += [f"n{number},gpu-driver,Linux,535.{100 + number % 40}.05",
                  f"n{number},container-toolkit,Linux,1.{number % 20}.{number % 2}",
                  f"n{number},dcgm,Linux,3.{number % 4}.{number % 10}"]
    path = folder / "inventory.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=str(ROOT / "build/release/ringfence"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    bulletins = str(SHARED / "data" / "bulletins")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        root = node_with_containers(folder, 100)
        for what, words in (
                ("assess, 100 containers", ["assess", "--root", root]),
                ("the same with bulletins", ["assess", "--root", root, "--csaf", bulletins]),
                ("bulletins, 1,000 nodes", ["advisory", "match", "--csaf", bulletins, "--inventory", inventory(folder, 1000)])):
            wall, cpu, kib = measured([options.program, *map(str, words), "-o", "json"], options.rounds)
            print(f"{what}: {wall:.3f} s, {cpu:.3f} s of the processor, {kib / 1024:.1f} MiB")


if __name__ == "__main__":
    main()
