#!/usr/bin/python3
"""All SigmaHQ rules over a million events on one core, against only parsing the same lines.

The events are the regression events of `shared/data/sigma` as they are (Windows events as JSON) and
Linux events made from the fields and values of the rules in rules/linux, shuffled with a fixed seed. Where there
is a cargo, `tests/peers/sigma` (the crate rsigma-eval) takes its turn on the same events in the flat form that it
knows, and what both find is compared.

    bench/sigma.py [--events N] [--rounds N] [--few N] [--peer-events N]
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

import common
import yaml

SHARED = pathlib.Path(os.environ.get("RINGFENCE_SHARED", common.ROOT.parent / "shared"))
SIGMA = SHARED / "data" / "sigma"


def linux_values():
    """{field: [values]} of the rules for Linux, as events would have them."""
    found = {}

    def take(field, modifiers, value):
        if "re" in modifiers or "cidr" in modifiers or value is None:
            return
        text = str(value).replace("*", "x").replace("?", "y")
        if "contains" in modifiers:
            text = f"start {text} end"
        elif "startswith" in modifiers:
            text += "/rest"
        elif "endswith" in modifiers:
            text = "/usr" + text if text.startswith("/") else "/opt/" + text
        found.setdefault(field, []).append(text)

    def walk(node):
        for entry in node if isinstance(node, list) else [node]:
            if isinstance(entry, dict):
                for key, value in entry.items():
                    field, *modifiers = key.split("|")
                    for one in value if isinstance(value, list) else [value]:
                        take(field or "message", modifiers, one)
            else:
                take("message", ["contains"], entry)

    for path in sorted((SIGMA / "rules" / "rules" / "linux").rglob("*.yml")):
        for name, selection in yaml.safe_load(path.read_text())["detection"].items():
            if name != "condition":
                walk(selection)
    return found


WORDS = ("run build test deploy fetch python3 bash make train.py --epochs 10 --batch 64 /data/set /home/ann/work "
         "cat ls grep -r src tar -xf a.tar.gz curl https://example.org/file nvidia-smi -q sleep 5").split()


def linux_event(dice, values, number):
    """One ordinary event; one in five has a value that some rule asks for."""
    event = {"time": 1_763_000_000_000 + number * 10, "host": f"node-{number % 40:02d}",
             "User": dice.choice(["root", "ann", "bob", "svc-ci"]), "ProcessId": dice.randrange(100, 60000),
             "Image": dice.choice(["/usr/bin/python3", "/usr/bin/bash", "/usr/bin/make", "/usr/bin/curl", "/bin/ls"]),
             "ParentImage": dice.choice(["/usr/bin/bash", "/usr/sbin/sshd", "/usr/lib/systemd/systemd"]),
             "CommandLine": " ".join(dice.choices(WORDS, k=dice.randrange(3, 14))),
             "CurrentDirectory": dice.choice(["/home/ann/work", "/srv/jobs/17", "/tmp"]),
             "ParentCommandLine": " ".join(dice.choices(WORDS, k=4)), "LogonId": dice.randrange(1, 9999)}
    if dice.random() < 0.2:
        field = dice.choice(sorted(values))
        event[field] = dice.choice(values[field])
    return event


def flat(event):
    """A Windows event as collectors write it: one object with the names that rules use."""
    if "Event" not in event:
        return event
    out = {}
    for name, value in event["Event"].get("System", {}).items():
        if isinstance(value, dict):
            for attribute, text in value.get("#attributes", {}).items():
                out[f"{name}_{attribute}"] = text
            if "#text" in value:
                out[name] = value["#text"]
        else:
            out[name] = value
    out.update(event["Event"].get("EventData") or {})
    for section in (event["Event"].get("UserData") or {}).values():
        out.update(section if isinstance(section, dict) else {})
    return out


def write_events(path, count, shape=lambda event: event):
    dice = random.Random(7)
    windows = []
    for case in sorted((SIGMA / "regression").glob("*.json")):
        windows += json.loads(case.read_text())["events"]
    windows = [json.dumps(shape(event), separators=(",", ":")) for event in windows]
    values = linux_values()
    linux = [json.dumps(linux_event(dice, values, i), separators=(",", ":")) for i in range(min(count, 50000))]
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(count):
            out.write(dice.choice(windows) if dice.random() < 0.5 else dice.choice(linux))
            out.write("\n")


def against_peer(peer, folder, events, rounds):
    """[(our rate, theirs)], and how many (line, rule) both find, only we, only they."""
    write_events(folder / "flat.jsonl", events, flat)
    rates = []
    for _ in range(rounds):
        ours = subprocess.run([common.BUILD / "bench" / "sigma", SIGMA / "rules", folder / "flat.jsonl", "--few", "1", "--rounds",
                               "1", "--matches", folder / "ours"], stdout=subprocess.PIPE, text=True, check=True)
        theirs = subprocess.run([peer, SIGMA / "rules", folder / "flat.jsonl", folder / "theirs"], stdout=subprocess.PIPE,
                                text=True, check=True)
        rates.append((json.loads(ours.stdout)[0]["all"], json.loads(theirs.stdout)["rate"]))
    mine, other = (set((folder / name).read_text().splitlines()) for name in ("ours", "theirs"))
    return rates, len(mine & other), len(mine - other), len(other - mine)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--few", type=int, default=100)
    parser.add_argument("--peer-events", type=int, default=20_000)
    options = parser.parse_args()
    if not SIGMA.is_dir():
        raise SystemExit(f"{SIGMA} is not there: set RINGFENCE_SHARED to the folder of shared data")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        events = pathlib.Path(folder) / "events.jsonl"
        write_events(events, options.events)
        done = subprocess.run([common.BUILD / "bench" / "sigma", SIGMA / "rules", events, "--few", str(options.few),
                               "--rounds", str(options.rounds)], stdout=subprocess.PIPE, text=True, check=True)
        peer = common.cargo_peer("sigma")
        found = peer and against_peer(peer, pathlib.Path(folder), options.peer_events, options.rounds)
    rounds = json.loads(done.stdout)
    all_rates = [one["all"] for one in rounds]
    few_rates = [one["few"] for one in rounds]
    parse_rates = [one["parse"] for one in rounds]
    to_parse = [p / a for p, a in zip(parse_rates, all_rates)]
    to_few = [f / a for f, a in zip(few_rates, all_rates)]
    first = rounds[0]
    rows = []
    if found:
        rates, both, only_ours, only_theirs = found
        ratios = [a / b for a, b in rates]
        rows = [(f"{options.peer_events} events in flat form, events a second", common.spread([a for a, _ in rates], 0),
                 f"rsigma-eval 0.23.0: {common.spread([b for _, b in rates], 0)}; times faster {common.spread(ratios)}; matches of "
                 f"both {both}, only ours {only_ours}, only theirs {only_theirs}",
                 common.verdict(statistics.median(ratios) >= 5 and only_ours + only_theirs == 0,
                                "at least 5 times, the same matches"), "sigma-peer")]
    common.record(
        "Sigma rules over events, one core",
        f"bench/sigma.py --events {options.events} --rounds {options.rounds} --few {options.few}",
        [(f"{first['rules']} rules, events a second ({first['bytes'] // first['events']} bytes each)",
          common.spread(all_rates, 0), f"only parsing: {common.spread(parse_rates, 0)}; times slower {common.spread(to_parse)}",
          common.verdict(statistics.median(all_rates) >= 200_000 and statistics.median(to_parse) <= 3,
                         "200,000 a second, within 3 times of parsing"), "sigma-all"),
         (f"the same with {first['few_rules']} rules", common.spread(few_rates, 0), f"times faster {common.spread(to_few)}",
          common.verdict(statistics.median(to_few) < 2, "less than 2 times"), "sigma-few"),
         ("matches; rules read and compiled in, s", f"{first['matches']}; {first['read_s']:.1f}, {first['build_s']:.1f}",
          f"{first['malformed']} malformed", "-", "sigma-matches")] + rows)


main()
