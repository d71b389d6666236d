#include "assure/evidence_page.h"

namespace ringfence::assure {

std::string VerifyPage() {
  return R"(# How to verify this package without Ringfence

You need `sha256sum`, `openssl` 3 and, for the proofs, any program that can hash (Python will do). Two keys must come to you by another
way than this package: the key of whoever signed it, and the key of the audit log. The copies in here (`signer.pem`, `audit/log.vkey`)
show damage only.

## 1. Every file is what was packed

    sha256sum --check --strict MANIFEST.sha256

Nothing but `MANIFEST.sha256`, `MANIFEST.sig` and `MANIFEST.proof.json` may be in the package that the manifest does not list:

    find . -type f | sed 's,^\./,,' | grep -v '^MANIFEST\.' | sort > have
    cut -c 67- MANIFEST.sha256 | sort | diff - have

## 2. Who packed it

Where `MANIFEST.sig` is there, it is an Ed25519 signature of the bytes of `MANIFEST.sha256`:

    openssl pkeyutl -verify -pubin -inkey signer.pem -rawin -in MANIFEST.sha256 -sigfile MANIFEST.sig

with the signer's key as you know it instead of `signer.pem`.

Where `MANIFEST.proof.json` is there, the server took the manifest down in its audit log when the package was made: it is a proof as in 4 below, its
entry's `action` is `evidence.export`, and `detail.manifest_sha256` in it is the SHA-256 of `MANIFEST.sha256`. `time` and `actor` say when and by
whom. So the log's signature vouches for the manifest, and with it for every file.

## 3. The audit log's checkpoint

`audit/checkpoint` is a C2SP signed note (c2sp.org/signed-note, c2sp.org/tlog-checkpoint): origin, number of entries, base64 of the
Merkle tree's root, an empty line, then signatures. `audit/log.vkey` is `NAME+HEX+BASE64`; the base64 is one byte 0x01 and the 32 bytes of
an Ed25519 key.

    # the text that is signed: the first three lines with their ends
    head -n 3 audit/checkpoint > text
    # the signature: base64 of 4 bytes key id and 64 bytes signature, in the line that begins with a dash and the log's name
    sed -n 5p audit/checkpoint | awk '{print $3}' | base64 -d | tail -c 64 > sig
    # the key as DER: a fixed head of 12 bytes, then the 32
    { printf '\060\052\060\005\006\003\053\145\160\003\041\000'
      cut -d+ -f3- audit/log.vkey | base64 -d | tail -c 32; } > key.der
    openssl pkeyutl -verify -pubin -inkey key.der -keyform DER -rawin -in text -sigfile sig

Further lines are cosignatures of witnesses (c2sp.org/tlog-cosignature). Keep the checkpoint: a log that later does not contain it was
changed.

## 4. Each audit entry is in the log

Each `audit/proofs/N.json` has `entry` (base64 of the entry's bytes, which are JSON), `index`, `proof` (base64 hashes, from the leaf up) and the
`checkpoint` it leads to, to be verified as above. The tree is that of RFC 6962 with SHA-256:

    leaf = SHA-256(0x00 || entry);  node(a, b) = SHA-256(0x01 || a || b)

    h, i, last = leaf, index, size - 1
    for p in proof:
        if i is odd or i == last:
            h = node(p, h)
            while i is even and i != 0: i, last = i >> 1, last >> 1
        else:
            h = node(h, p)
        i, last = i >> 1, last >> 1
    # right when last == 0 and h is the root in the checkpoint

`audit/entries.jsonl` has the same entries to read, a line each.

## 5. What the nodes signed

Each `evidence/statements/*.json` has `node`, `type` and `envelope`, a DSSE envelope: how a probe's box ended (`probe-...`), or that a GPU was
scrubbed (`receipt-...`). The node's key is `receipt_key` (base64, 32 bytes of Ed25519) in `evidence/nodes.json`. Signed are the bytes

    "DSSEv1 " length(type) " " type " " length(payload) " " payload

with lengths in decimal, in bytes, and `payload` decoded from base64. The payload must name the same node. For a probe, `walls_away` empty and
`ending` "exited 0" means that the attack was held; its control, the same attack with walls taken away, must have ended with "exited 10".

## 6. What it says

`reports/controls.html` is for reading, `controls.json` the same for programs, `oscal-*.json` for tools that read OSCAL. Each control says on
which checks (`evidence/checks.json`, with what was read), probes (`evidence/probes-*.json`) and audit entries its status rests, and what a
person must show besides. `package.json` says when and where it was made, and what is missing.

What a verified package does not show: that the machine which made it told the truth about what it read (checks are its own word; probes and
receipts are signed by the node's root side), or anything about what a person must show.
)";
}

}  // namespace ringfence::assure
