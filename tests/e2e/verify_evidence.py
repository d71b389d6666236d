#!/usr/bin/python3
"""Verifies a package of `ringfence evidence export` by what its VERIFY.md says: Python's library and openssl, nothing of ours.

verify_evidence.py PACKAGE [--signer PEM] [--log-key VKEY]    prints what it found; exit 1 when something is wrong
"""

import argparse
import base64
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

SPKI_HEAD = bytes.fromhex("302a300506032b6570032100")


class Wrong(Exception):
    pass


def read(package):
    """Path to bytes, of a tar or a folder."""
    path = pathlib.Path(package)
    if path.is_dir():
        return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}
    files = {}
    with tarfile.open(path) as tar:
        for member in tar:
            if not member.isfile() or member.name in files:
                raise Wrong(f"{member.name}: no plain file, or twice")
            files[member.name] = tar.extractfile(member).read()
    return files


def ed25519(der, message, signature):
    with tempfile.TemporaryDirectory() as folder:
        names = [pathlib.Path(folder) / name for name in ("key", "message", "signature")]
        for name, data in zip(names, (der, message, signature)):
            name.write_bytes(data)
        form = "PEM" if der.startswith(b"-----") else "DER"
        done = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", form, "-inkey", names[0], "-rawin",
                               "-in", names[1], "-sigfile", names[2]], capture_output=True, check=False)
        return done.returncode == 0


def open_note(note, vkey):
    """The size and root of a checkpoint that the log has signed."""
    name, key_id, key = vkey.split("+", 2)
    raw = base64.b64decode(key, validate=True)
    if raw[:1] != b"\x01" or hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4].hex() != key_id:
        raise Wrong("the log's key is none")
    text, signatures = note.split("\n\n", 1)
    text += "\n"
    for line in signatures.splitlines():
        dash, who, encoded = line.split(" ")
        blob = base64.b64decode(encoded, validate=True)
        if dash == "\u2014" and who == name and blob[:4].hex() == key_id:
            if not ed25519(SPKI_HEAD + raw[1:], text.encode(), blob[4:]):
                raise Wrong("the checkpoint's signature is wrong")
            origin, size, root = text.splitlines()
            if origin != name:
                raise Wrong("the checkpoint is another log's")
            return int(size), base64.b64decode(root, validate=True)
    raise Wrong("the checkpoint is not signed by the log")


def node(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def check_proof(document, vkey):
    size, root = open_note(document["checkpoint"], vkey)
    index = document["index"]
    hash_, i, last = hashlib.sha256(b"\x00" + base64.b64decode(document["entry"])).digest(), index, size - 1
    if index >= size:
        raise Wrong("the entry is beyond the checkpoint")
    for step in map(base64.b64decode, document["proof"]):
        if last == 0:
            raise Wrong("the path is too long")
        if i & 1 or i == last:
            hash_ = node(step, hash_)
            while not i & 1 and i:
                i, last = i >> 1, last >> 1
        else:
            hash_ = node(hash_, step)
        i, last = i >> 1, last >> 1
    if last != 0 or hash_ != root:
        raise Wrong("the path does not lead to the checkpoint's root")
    json.loads(base64.b64decode(document["entry"]))


def check_recorded(document, manifest, vkey):
    check_proof(document, vkey)
    entry = json.loads(base64.b64decode(document["entry"]))
    if entry["action"] != "evidence.export" or entry["detail"]["manifest_sha256"] != hashlib.sha256(manifest).hexdigest():
        raise Wrong("the log has another manifest")


def check_statement(document, nodes):
    envelope = json.loads(document["envelope"])
    payload = base64.b64decode(envelope["payload"], validate=True)
    kind = envelope["payloadType"]
    if kind != document["type"] or json.loads(payload)["node"] != document["node"]:
        raise Wrong("is of another kind or node")
    [key] = [one["receipt_key"] for one in nodes if one["name"] == document["node"]]
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
    if not any(ed25519(SPKI_HEAD + base64.b64decode(key), signed, base64.b64decode(one["sig"])) for one in envelope["signatures"]):
        raise Wrong("is not signed by the node")


def verify(package, signer=None, vkey=None):
    """What was found: {"files", "proofs", "statements", "signed", "recorded", "problems"}."""
    files = read(package)
    found = {"files": 0, "proofs": 0, "statements": 0, "signed": False, "recorded": False, "problems": []}

    def tried(what, deed):
        try:
            deed()
            return True
        except (Wrong, ValueError, KeyError, TypeError) as error:
            found["problems"].append(f"{what}: {error}")
            return False

    manifest = files.get("MANIFEST.sha256", b"")
    listed = dict(reversed(line.split("  ", 1)) for line in manifest.decode().splitlines())
    for path, digest in listed.items():
        if path not in files or hashlib.sha256(files[path]).hexdigest() != digest:
            found["problems"].append(f"{path}: missing or changed")
        else:
            found["files"] += 1
    for path in set(files) - set(listed) - {"MANIFEST.sha256", "MANIFEST.sig", "MANIFEST.proof.json"}:
        found["problems"].append(f"{path}: not in the manifest")
    if not listed:
        found["problems"].append("no manifest")
    if "MANIFEST.sig" in files:
        found["signed"] = ed25519(signer or files["signer.pem"], manifest, files["MANIFEST.sig"])
        if not found["signed"]:
            found["problems"].append("MANIFEST.sig: wrong")
    elif signer:
        found["problems"].append("not signed")
    vkey = vkey or files.get("audit/log.vkey", b"").decode().strip()
    if "audit/checkpoint" in files:
        tried("audit/checkpoint", lambda: open_note(files["audit/checkpoint"].decode(), vkey))
    if "MANIFEST.proof.json" in files:
        found["recorded"] = tried("MANIFEST.proof.json", lambda: check_recorded(json.loads(files["MANIFEST.proof.json"]), manifest, vkey))
    for path in sorted(files):
        if path.startswith("audit/proofs/"):
            found["proofs"] += tried(path, lambda: check_proof(json.loads(files[path]), vkey))
        if path.startswith("evidence/statements/"):
            found["statements"] += tried(path, lambda: check_statement(json.loads(files[path]),
                                                                       json.loads(files["evidence/nodes.json"])))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package")
    parser.add_argument("--signer")
    parser.add_argument("--log-key")
    options = parser.parse_args()
    found = verify(options.package, pathlib.Path(options.signer).read_bytes() if options.signer else None, options.log_key)
    print(json.dumps(found, indent=1))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
