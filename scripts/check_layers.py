#!/usr/bin/python3
"""Reads every #include under src/ and fails on one that breaks the layers of the house.

The table and the rules are those of docs/architecture.md. An exemption is a line in EXEMPTIONS
with its reason; one that nothing needs any more is a breach too.

usage: check_layers.py [ROOT]
"""

import os
import re
import sys
from collections import namedtuple

LEVELS = {
    "base": 0,
    "os": 1, "crypto": 1, "gpu": 1,
    "net": 2, "model": 2,
    "wire": 3, "store": 3, "cedar": 3, "sigma": 3,
    "audit": 4, "policy": 4,
    "identity": 5, "vault": 5, "fleet": 5, "image": 5, "unpack": 5, "resolve": 5, "place": 5,
    "lease": 6, "isolate": 6, "sense": 6, "detect": 6,
    "respond": 7, "assure": 7, "backup": 7,
    "server": 8, "agent": 8, "jailer": 8, "worker": 8, "cli": 8,
}  # fmt: skip
TOP = 8  # nobody includes these

# Tests play the operator and the attacker too: they make pipes, kill processes, change modes. So
# they may call the kernel directly; every other rule holds for them.
KERNEL = "the kernel"
Door = namedtuple("Door", "header folders what")
DOORS = [  # the first that matches decides
    Door(r"dlfcn\.h", {"gpu"}, "loading libraries"),
    Door(
        r"(sys|linux|asm|asm-generic|netinet|arpa|net)/.*|(unistd|fcntl|sched|dirent|poll|signal"
        r"|spawn|grp|pwd|termios|mntent|netdb|ifaddrs|glob|ftw|syslog|seccomp)\.h",
        {"os"},
        KERNEL,
    ),
    Door(r"nftables/.*", {"os"}, "libnftables"),
    Door(r"openssl/.*", {"crypto", "net"}, "OpenSSL"),
    Door(r"boost/(asio|beast).*", {"net"}, "Asio and Beast"),
    Door(r"yaml-cpp/.*", {"wire"}, "yaml-cpp"),
    Door(r"archive(_entry)?\.h", {"unpack"}, "libarchive"),
    Door(r"re2/.*", {"sigma", "detect"}, "RE2"),
    Door(r"simdjson\.h", {"sigma"}, "simdjson"),
    Door(r"sqlite3\.h", {"store"}, "SQLite"),
    Door(r"libpq(-fe|/.*)?\.h", {"store"}, "libpq"),
]
VENDOR_FOLDER = "gpu"
VENDOR_SYMBOL = re.compile(r"\b(nvml[A-Z]\w*|NVML_\w+|cu[A-Z][a-z]\w*|CUDA_ERROR_\w+|amdsmi_\w+)")

Exemption = namedtuple("Exemption", "file include reason")
EXEMPTIONS = [
    Exemption(
        "src/isolate/box_init_main.cc",
        r"(sys/.*|fcntl\.h|poll\.h|signal\.h|unistd\.h)",
        "process 1 of every box: static, and nothing but the C library",
    ),
    Exemption(
        "src/cli/daemons.cc",
        r"(agent/agent\.h|server/server\.h)",
        "the one binary: where its command line hands over to the server and the agent in it",
    ),
    Exemption(
        "src/store/postgres_library.cc",
        r"dlfcn\.h",
        "libpq is loaded when a PostgreSQL database is opened: it would slow every other start",
    ),
    Exemption(
        "src/isolate/network_places_test.h",
        r"(arpa/inet\.h|fcntl\.h|poll\.h|sched\.h|signal\.h|sys/(socket|wait)\.h|unistd\.h)",
        "part of the network's tests: processes in namespaces, and sockets inside them",
    ),
    Exemption(
        "src/resolve/lying_test.h",
        r"(poll\.h|sys/socket\.h|unistd\.h)",
        "part of the resolver's tests: a resolver that lies",
    ),
    Exemption(
        "src/jailer/harness_test.h",
        r"(sys/socket\.h|sys/un\.h|unistd\.h)",
        "test support: an agent that misbehaves on purpose",
    ),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'',
    re.DOTALL,
)


def without_comments(text):
    """The text with comments blanked; lines keep their numbers."""

    def blank(match):
        found = match.group(0)
        return re.sub(r"[^\n]", " ", found) if found.startswith(("//", "/*")) else found

    return COMMENT_OR_LITERAL.sub(blank, text)


def include_breach(name, folder, kind, target):
    """Why this include is not allowed in file `name` of `folder`; None when it is."""
    if kind == "<":
        for door in DOORS:
            if re.fullmatch(door.header, target):
                if folder in door.folders:
                    return None
                if door.what == KERNEL and name.endswith("_test.cc"):
                    return None
                return f"only {' and '.join(sorted(door.folders))}/ may touch {door.what}"
        return None
    parts = target.split("/")
    if len(parts) != 2 or parts[0] not in LEVELS:
        return 'an include of ours is written "folder/file.h", from src/'
    if parts[0] == folder:
        return None
    if LEVELS[parts[0]] == TOP:
        return f"nobody includes {parts[0]}/ (level {TOP})"
    if LEVELS[parts[0]] > LEVELS[folder]:
        return f"{folder}/ is level {LEVELS[folder]}, {parts[0]}/ is {LEVELS[parts[0]]}"
    return None


def check_file(name, text, exemptions, used):
    """The breaches of one file; `name` is relative to the root, "src/os/file.cc"."""
    parts = name.split("/")
    if len(parts) != 3 or parts[1] not in LEVELS:
        return [f"{name}:1: not in a folder of the house (see LEVELS in scripts/check_layers.py)"]
    folder = parts[1]
    code = without_comments(text)
    breaches = []

    def add(position, what):
        breaches.append(f"{name}:{code.count(chr(10), 0, position) + 1}: {what}")

    for match in INCLUDE.finditer(code):
        kind, target = match.groups()
        why = include_breach(name, folder, kind, target)
        if why is None:
            continue
        allowed = [e for e in exemptions if e.file == name and re.fullmatch(e.include, target)]
        if allowed:
            used.update(allowed)
        else:
            add(match.start(2), f"includes {target}: {why}")
    if folder != VENDOR_FOLDER:
        for match in VENDOR_SYMBOL.finditer(code):
            add(match.start(), f"names {match.group(0)}: only gpu/ names a vendor's symbol")
    return breaches


def check(root, exemptions):
    """All breaches under `root`/src, and how many files were read."""
    breaches, used, files = [], set(), 0
    for folder, _, names in sorted(os.walk(os.path.join(root, "src"))):
        for name in sorted(names):
            if not name.endswith((".h", ".cc", ".c")):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            breaches += check_file(os.path.relpath(path, root), text, exemptions, used)
            files += 1
    for exemption in exemptions:
        if exemption not in used:
            breaches.append(
                f"scripts/check_layers.py: nothing needs the exemption for {exemption.file}"
                f" ({exemption.include}) any more: remove it"
            )
    return breaches, files


def main(arguments):
    root = arguments[0] if arguments else os.path.join(os.path.dirname(__file__), "..")
    breaches, files = check(root, EXEMPTIONS)
    for breach in breaches:
        print(breach)
    if not files:
        print(f"{root}/src: no sources found")
    print(f"layers: {files} files, {len(breaches)} breaches")
    return 1 if breaches or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
