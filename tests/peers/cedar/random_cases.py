#!/usr/bin/python3
"""Random policies, entities and requests: the crate cedar-policy judges them, and our engine must agree.

Goal: parser, validator, evaluator and engine answer as the reference does on what nobody wrote by hand.
Method: each case is a test in the format of Cedar's corpus. `cedar-peer --judge DIR` fills in what the reference says
(whether the policies and requests validate, decision, determining policies, errors), and `ringfence cedar conformance
DIR` says where we differ. A case that differs is made smaller until nothing can be left out, and printed.

    tests/peers/cedar/random_cases.py PEER RINGFENCE [--cases N] [--requests N] [--seed N] [--keep DIR]
"""

import argparse
import copy
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

SCHEMA = """entity Group in [Group] = { level: Long };
entity User in [Group] = {
  age: Long, name: String, boss?: User, labels: Set<String>, home?: ipaddr, since?: datetime, rec: { a?: Bool, b: Long }
} tags String;
entity Doc in [Group] = { owner: User, size: Long, score: decimal, ttl: duration, readers: Set<User> };
action all;
action read, write in [all] appliesTo {
  principal: [User], resource: [Doc, Group], context: { now?: datetime, ip?: ipaddr, n: Long, flag: Bool }
};
action own in [write] appliesTo { principal: [User, Group], resource: [User], context: {} };
"""
TYPES = ("User", "Group", "Doc")
ACTIONS = ("read", "write", "own", "all")
LONGS = ("0", "1", "2", "-1", "7", "9223372036854775807", "-9223372036854775808")
STRINGS = ('""', '"a"', '"ab"', '"*"', '"é\\u{1F600}"', '"a\\0b"', '"user1"')
PATTERNS = ('"*"', '"a*"', '"*b"', '"\\*"', '"u*r*"', '"é*"', '""')
IPS = ("10.0.0.1", "10.0.0.0/8", "::1", "ffff::/16", "224.0.0.1", "127.0.0.1", "0.0.0.0/0", "10.0.0.1/33", "::ffff:1.2.3.4")
DECIMALS = ("0.0", "1.5", "-3.25", "922337203685477.5807", "1.23456", "12.0000", "1")
DATETIMES = ("2024-02-29", "2024-02-03T04:05:06Z", "2023-02-29", "1969-12-31T23:59:59.999Z", "2024-01-01T00:00:00+0200", "0000-01-01")
DURATIONS = ("1h", "-1d2h", "0ms", "90m", "1d25h", "9999999999d", "1h1d", "5s100ms")


class Dice(random.Random):
    """An expression is (format, child, ...): text with a place for each child, so that it can be made smaller."""

    def uid(self):
        return self.choice(TYPES), str(self.randrange(5))

    def leaf(self, kind):
        entity = '{}::"{}"'.format(*self.uid())
        ext = lambda name, texts: f'{name}("{self.choice(texts)}")'  # noqa: E731
        return (({"bool": lambda: self.choice(("true", "false", "context.flag", "principal.rec.a")),
                  "long": lambda: self.choice(LONGS + ("principal.age", "resource.size", "context.n", "principal.rec.b", "resource.level")),
                  "string": lambda: self.choice(STRINGS + ("principal.name",)),
                  "entity": lambda: self.choice((entity, "principal", "resource", "action", "principal.boss", "resource.owner",
                                                 f'Action::"{self.choice(ACTIONS)}"')),
                  "set": lambda: self.choice(("[]", "principal.labels", "resource.readers", "[1, 2, 1]", '["a"]', f"[{entity}, principal]")),
                  "record": lambda: self.choice(("context", "principal.rec", '{a: true, "b c": 1}', "{}")),
                  "ip": lambda: self.choice((ext("ip", IPS), "principal.home", "context.ip")),
                  "decimal": lambda: self.choice((ext("decimal", DECIMALS), "resource.score")),
                  "datetime": lambda: self.choice((ext("datetime", DATETIMES), "principal.since", "context.now")),
                  "duration": lambda: self.choice((ext("duration", DURATIONS), "resource.ttl"))}[kind]()).replace("{", "{{").replace("}", "}}"),)

    def expr(self, kind, depth):
        if self.random() < 0.04:  # now and then of another type
            kind = self.choice(("bool", "long", "string", "entity", "set", "record", "ip", "decimal", "datetime", "duration"))
        if depth == 0 or self.random() < 0.1:
            return self.leaf(kind)
        some = self.choice(("long", "string", "entity", "set", "record", "ip", "decimal", "datetime", "duration", "bool"))
        ordered = self.choice(("long", "long", "datetime", "duration"))
        forms = {
            "bool": [("({} && {})", "bool", "bool"), ("({} || {})", "bool", "bool"), ("!({})", "bool"), ("({} == {})", some, some),
                     ("({} != {})", some, some), ("({} %s {})" % self.choice(("<", "<=", ">", ">=")), ordered, ordered),
                     ("({} in {})", "entity", "entity"), ("({} in [{}, {}])", "entity", "entity", "entity"),
                     ("({}).contains({})", "set", self.choice(("string", "long", "entity"))), ("({}).containsAll({})", "set", "set"),
                     ("({}).containsAny({})", "set", "set"), ("({}).isEmpty()", "set"),
                     ("(({}) like %s)" % self.choice(PATTERNS), "string"), ("(({}) is %s)" % self.choice(TYPES), "entity"),
                     ("(({}) is %s in {})" % self.choice(TYPES), "entity", "entity"),
                     ("(({}) has %s)" % self.choice(("boss", "since", "rec.a", "owner", "boss.home", '"b c"')), "entity"),
                     ("(({}) has %s)" % self.choice(("a", "b", "ip", "now", '"b c"')), "record"),
                     ("({}).hasTag({})", "entity", "string"), ("({}).%s()" % self.choice(("isIpv4", "isIpv6", "isLoopback", "isMulticast")), "ip"),
                     ("({}).isInRange({})", "ip", "ip"),
                     ("({}).%s({})" % self.choice(("lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual")), "decimal", "decimal"),
                     ("(principal has boss && ({}))", "bool"), ("(context has ip && ({}))", "bool"), ("(principal has home && ({}))", "bool")],
            "long": [("({} + {})", "long", "long"), ("({} - {})", "long", "long"), ("({} * {})", "long", "long"), ("(-({}))", "long"),
                     ("({}).%s()" % self.choice(("toMilliseconds", "toSeconds", "toMinutes", "toHours", "toDays")), "duration")],
            "string": [("({}).getTag({})", "entity", "string")],
            "set": [("[{}, {}]", "long", "long"), ("[{}, {}]", "entity", "entity"), ("[{}]", "set"), ("[{}, {}]", "string", some)],
            "record": [("{{a: {}, b: {}}}", "bool", "long")],
            "datetime": [("({}).offset({})", "datetime", "duration"), ("({}).toDate()", "datetime")],
            "duration": [("({}).durationSince({})", "datetime", "datetime"), ("({}).toTime()", "datetime")],
        }.get(kind, [])
        if not forms or self.random() < 0.08:
            forms = [("(if {} then {} else {})", "bool", kind, kind)]
        form, *kinds = self.choice(forms)
        return (form, *(self.expr(one, depth - 1) for one in kinds))

    def scope(self, name):
        entity = '{}::"{}"'.format(*self.uid())
        return self.choice((name, name, name, f"{name} == {entity}", f"{name} in {entity}", f"{name} is {self.choice(TYPES)}",
                            f"{name} is {self.choice(TYPES)} in {entity}"))

    def policy(self):
        action = lambda: f'Action::"{self.choice(ACTIONS)}"'  # noqa: E731
        head = "{}({}, {}, {})".format(
            self.choice(("permit", "permit", "forbid")), self.scope("principal"),
            self.choice(("action", "action", f"action == {action()}", f"action in {action()}", f"action in [{action()}, {action()}]")),
            self.scope("resource"))
        return {"head": head, "conditions": [(self.choice(("when", "when", "unless")), self.expr("bool", self.randrange(4)))
                                             for _ in range(self.randrange(3))]}

    def entity(self, kind, number):
        uid = lambda t: {"__entity": {"type": t, "id": str(self.randrange(5))}}  # noqa: E731
        ext = lambda fn, arg: {"__extn": {"fn": fn, "arg": arg}}  # noqa: E731
        out = {"uid": {"type": kind, "id": str(number)}, "attrs": {}, "parents": [
            {"type": "Group", "id": str(n)} for n in range(number + 1 if kind == "Group" else 0, 5) if self.random() < 0.3]}
        attrs = out["attrs"]
        if kind == "Group":
            attrs["level"] = self.randrange(-1, 3)
        elif kind == "User":
            attrs.update(age=self.choice((0, 1, 7, 2**63 - 1)), name=self.choice(("", "a", "ab", "user1", "é😀", "a\0b")),
                         labels=self.sample(["a", "b", "*"], self.randrange(3)), rec={"b": self.randrange(3)})
            if self.random() < 0.5:
                attrs["boss"] = uid("User")
            if self.random() < 0.5:
                attrs["home"] = ext("ip", self.choice(("10.0.0.1", "::1", "127.0.0.1")))
            if self.random() < 0.5:
                attrs["since"] = ext("datetime", self.choice(("2024-02-29", "1969-12-31T23:59:59.999Z")))
            if self.random() < 0.5:
                attrs["rec"]["a"] = self.random() < 0.5
            out["tags"] = {key: self.choice(("a", "x")) for key in ("a", "ab") if self.random() < 0.5}
        else:
            attrs.update(owner=uid("User"), size=self.choice((0, 2, -2**63)), score=ext("decimal", self.choice(("0.0", "1.5", "-3.25"))),
                         ttl=ext("duration", self.choice(("1h", "-1d2h", "0ms"))), readers=[uid("User") for _ in range(self.randrange(3))])
        return out

    def request(self):
        action = self.choice(ACTIONS[:3])
        own = action == "own"
        context = {} if own else {"n": self.choice((0, 1, 2**63 - 1)), "flag": self.random() < 0.5}
        if not own and self.random() < 0.5:
            context["ip"] = {"__extn": {"fn": "ip", "arg": self.choice(("10.0.0.1", "::1"))}}
        if not own and self.random() < 0.5:
            context["now"] = {"__extn": {"fn": "datetime", "arg": self.choice(("2024-02-29", "2024-02-03T04:05:06Z"))}}
        uid = lambda kinds: {"type": self.choice(kinds), "id": str(self.randrange(6))}  # noqa: E731
        return {"principal": uid(("User", "Group") if own else ("User",)), "action": {"type": "Action", "id": action},
                "resource": uid(("User",) if own else ("Doc", "Group")), "context": context}

    def case(self, requests):
        return {"policies": [self.policy() for _ in range(self.randrange(1, 9))],
                "entities": [self.entity(kind, n) for kind in TYPES for n in range(5) if self.random() < 0.9],
                "requests": [self.request() for _ in range(requests)]}


def text_of(expr):
    return expr[0].format(*map(text_of, expr[1:]))


def policies_of(case):
    return "".join(one["head"] + "".join(f" {word} {{ {text_of(body)} }}" for word, body in one["conditions"]) + ";\n"
                   for one in case["policies"])


def write(folder, name, case):
    (folder / f"{name}.cedar").write_text(policies_of(case), encoding="utf-8")
    (folder / f"{name}.cedarschema").write_text(SCHEMA, encoding="utf-8")
    (folder / f"{name}.entities.json").write_text(json.dumps(case["entities"]), encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps(
        {"policies": f"{name}.cedar", "entities": f"{name}.entities.json", "schema": f"{name}.cedarschema", "requests": case["requests"]}),
        encoding="utf-8")


class Judge:
    def __init__(self, peer, ringfence):
        self.peer, self.ringfence = peer, ringfence
        self.totals = dict.fromkeys(("files", "requests", "valid", "refused", "allowed", "errors"), 0)

    def differ(self, cases, count=False):
        """By place in `cases`: what differs."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for i, case in enumerate(cases):
                write(folder, i, case)
            done = subprocess.run([self.peer, "--judge", folder], stdout=subprocess.PIPE, text=True, check=True)
            said = json.loads(done.stdout)
            found = {}
            for one in said["refused"]:  # the reference does not take these policies or entities: nor may we
                args = ["--policies", folder / f"{one}.cedar"]
                ours = subprocess.run([self.ringfence, "cedar", "check-parse", *args], capture_output=True, check=False)
                if ours.returncode == 0:
                    found[one] = ["the reference refuses the policies: " + said["why"][str(one)]]
                (folder / f"{one}.json").unlink()
            if len(said["refused"]) == len(cases):
                return found
            done = subprocess.run([self.ringfence, "cedar", "conformance", folder, "-o", "json"], stdout=subprocess.PIPE, text=True,
                                  check=False)
            ours = json.loads(done.stdout)
            for one in ours["disagreements"]:
                found.setdefault(int(pathlib.Path(one["file"]).stem), []).append(one["what"])
            if count:
                self.totals["files"] += ours["files"]
                self.totals["requests"] += ours["requests"]
                self.totals["refused"] += len(said["refused"])
                for key in ("valid", "allowed", "errors"):
                    self.totals[key] += said[key]
            return found


def smaller(case):
    """Every case with one thing less."""
    for key in ("policies", "requests", "entities"):
        size = len(case[key])
        for step in {max(size // 2, 1), 1}:
            for at in range(0, size, step):
                if size - step >= (1 if key != "entities" else 0):
                    yield {**case, key: case[key][:at] + case[key][at + step:]}
    for i, policy in enumerate(case["policies"]):
        for k, (word, body) in enumerate(policy["conditions"]):
            def with_body(new, i=i, k=k, word=word):
                out = copy.deepcopy(case)
                if new is None:
                    del out["policies"][i]["conditions"][k]
                else:
                    out["policies"][i]["conditions"][k] = (word, new)
                return out
            yield with_body(None)
            for new in smaller_expr(body):
                yield with_body(new)


def smaller_expr(expr):
    yield from expr[1:]
    for i, child in enumerate(expr[1:], 1):
        for new in smaller_expr(child):
            yield (*expr[:i], new, *expr[i + 1:])


def shrink(judge, case):
    while True:
        candidates = list(smaller(case))
        found = judge.differ(candidates) if candidates else {}
        if not found:
            return case
        case = candidates[min(found)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer")
    parser.add_argument("ringfence")
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=pathlib.Path, help="where a case that differs is left")
    options = parser.parse_args()
    dice, judge, left = Dice(options.seed), Judge(options.peer, options.ringfence), options.cases
    while left > 0:
        cases = [dice.case(options.requests) for _ in range(min(left, 250))]
        left -= len(cases)
        found = judge.differ(cases, count=True)
        if found:
            case = shrink(judge, cases[min(found)])
            what = judge.differ([case])[0]
            if options.keep is not None:
                shutil.rmtree(options.keep, ignore_errors=True)
                options.keep.mkdir(parents=True)
                write(options.keep, "case", case)
            print(policies_of(case), json.dumps(case["entities"]), json.dumps(case["requests"]), *what, sep="\n")
            sys.exit(f"error: {len(found)} of {len(cases)} cases differ from the reference; the first, made smaller, is above (seed {options.seed})")
    print("{requests} requests of {files} cases decided the same (seed {seed}): {allowed} allowed, {errors} policies in error, {valid} cases "
          "validate, {refused} refused by both".format(seed=options.seed, **judge.totals))


main()
