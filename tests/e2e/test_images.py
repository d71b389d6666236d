"""Goal: a job runs in an image that was imported on its node, pinned by digest, and in nothing else; what
an image may not hold, a tenant may not have, or a node does not declare is refused with the reason.
Method: images built here around Debian's static busybox, imported as an operator would, run on the real
runtime; hostile ones are refused and leave nothing."""

import json
import os
import pathlib
import shutil
import tarfile
import tempfile

import pytest

import image_builder as build
from conftest import start, wait_until

BUSYBOX = pathlib.Path("/bin/busybox")
TENANT = "acme/research/vision"
OTHER = "globex/genomics/folding"


def busybox_layer():
    entries = [("bin", build.folder()), ("bin/busybox", BUSYBOX.read_bytes()), ("etc", build.folder()),
               ("etc/passwd", b"root:x:0:0:::\n"), ("app", build.folder()), ("app/said", b"from the image")]
    for name in ("sh", "cat", "ls", "id", "pwd", "env", "echo", "touch", "test", "stat", "df", "dd", "sleep", "true"):
        entries.append((f"bin/{name}", build.link("busybox")))
    entries.append(("bin/su", {"data": b"x", "mode": 0o4755}))
    return build.layer(*entries)


@pytest.fixture(scope="module")
def place():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-images-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def node(place):
    """A Ringfence whose node declares mounts and whose policy allows some of them."""
    if os.geteuid() != 0:
        pytest.skip("a node needs root for its jailer: run the tests as root")
    if not BUSYBOX.exists():
        pytest.skip("needs Debian's busybox-static")
    for name in ("data", "scratch"):
        (place / name).mkdir()
        (place / name).chmod(0o777)
    (place / "data" / "set").write_text("a dataset")
    state = place / "state"
    state.mkdir(mode=0o755)
    (state / "ringfence.yaml").write_text(
        f"node:\n  mounts: data={place}/data,scratch={place}/scratch:rw\n")
    instance = start(state)
    if any(one["missing"] for one in instance.json("node", "list")):
        instance.down()
        pytest.skip("this machine cannot run boxes")
    (state / "policy" / "boxes.yaml").write_text(
        "apiVersion: ringfence.dev/v1\nkind: BoxRule\nmetadata: {name: vision}\n"
        f"spec:\n  tenant: {TENANT}\n  mounts: [data, \"scratch:rw\"]\n  shmMiB: 64\n---\n"
        "apiVersion: ringfence.dev/v1\nkind: BoxRule\nmetadata: {name: genomics}\n"
        f"spec:\n  tenant: {OTHER}\n  pinnedImages: required\n")
    instance.ok("policy", "reload")
    yield instance
    instance("down")


@pytest.fixture(scope="module")
def image(node, place):
    """An image of two layers, imported by a name; returns its digest."""
    upper = build.layer(("app/.wh.said", b""), ("app/now", b"from the second layer"),
                        ("home/job/hidden", b"x"))
    files, digest = build.oci_files([busybox_layer(), upper], Env=["PATH=/bin", "GREETING=hello",
                                    "NVIDIA_VISIBLE_DEVICES=all", "LD_PRELOAD=/evil.so"], WorkingDir="/app")
    build.write_layout(place / "layout", files)
    stored = node.json("image", "import", f"oci:{place}/layout:v1@{digest}", "--name", "acme/busybox:1")
    assert stored["digest"] == digest
    assert stored["privileged_bits"] == 1
    wait_until(lambda: any(digest in json.dumps(one) for one in node.json("node", "list")),
               "the server to hear of the image", 60)
    return digest


def run(node, *words, tenant=TENANT, command=("true",)):
    return node("run", "-t", tenant, "--timeout", "60s", *words, "--", *command)


def test_a_job_runs_in_its_image_and_nothing_else(node, image):
    done = run(node, "--image", "acme/busybox:1", command=(
        "sh", "-c", "pwd; cat now; ls; ls /; env; test -e /usr && echo usr; touch /app/x; id -u; stat -c %a /bin/su; "
        "ls -A /home/job; touch /home/job/mine && echo wrote"))
    assert done.returncode == 0, done.stdout + done.stderr + node.logs()
    lines = done.stdout.splitlines()
    assert lines[0] == "/app"
    assert "from the second layer" in lines[1]
    assert "said" not in lines, "a whiteout hides what a lower layer had"
    assert "usr" not in lines, "nothing of the host's /usr"
    assert "GREETING=hello" in done.stdout
    assert "NVIDIA_VISIBLE_DEVICES" not in done.stdout and "LD_PRELOAD" not in done.stdout
    assert "1000" in lines and "555" in lines, "the job's user; no set-user-id bit"
    assert "hidden" not in done.stdout and "wrote" in lines
    assert "Read-only" in done.stderr or "denied" in done.stderr.lower(), done.stderr


def test_the_digest_is_in_lease_grant_and_log(node, image):
    lease = json.loads(node.ok("run", "-t", TENANT, "--image", "acme/busybox:1", "--output", "json", "--", "true"))
    assert lease["image"] == image
    assert lease["request"]["image"] == "acme/busybox:1"
    entries = node.json("audit", "list", "--lease", lease["id"])
    assert any(one["entry"].get("detail", {}).get("image") == image for one in entries), entries


def test_local_references_are_named_by_their_digest(node, image, place):
    done = run(node, "--image", f"oci:{place}/layout", command=("cat", "/app/now"))
    assert done.returncode == 0, done.stderr
    assert "second layer" in done.stdout


def test_docker_archives(node, place):
    files, digest = build.docker_files([busybox_layer()], "docker/busybox:2", Env=["PATH=/bin"])
    build.write_tar(place / "docker.tar", files)
    stored = node.json("image", "import", place / "docker.tar")
    assert stored["digest"] == digest and stored["names"] == ["docker/busybox:2"]
    assert any(one["digest"] == digest for one in node.json("image", "list"))
    node.ok("image", "remove", digest[7:27])
    assert all(one["digest"] != digest for one in node.json("image", "list"))


def test_policy_demands_a_digest(node, image):
    refused = run(node, "--image", "acme/busybox:1", tenant=OTHER)
    assert refused.returncode == 3 and "digest" in refused.stderr and "boxes.yaml" in refused.stderr, refused.stderr
    done = run(node, "--image", f"acme/busybox:1@{image}", tenant=OTHER)
    assert done.returncode == 0, done.stderr


def test_images_that_are_not_there(node, image):
    unknown = run(node, "--image", "no/such:1")
    assert unknown.returncode == 4 and "image import" in unknown.stderr, unknown.stderr
    nowhere = run(node, "--image", "sha256:" + "0" * 64)
    assert nowhere.returncode == 6 and "no node has" in nowhere.stderr, nowhere.stderr
    nonsense = run(node, "--image", "../etc")
    assert nonsense.returncode != 0


def test_hostile_images_are_refused_by_entry(node, image, place):
    before = node.json("image", "list")
    hostile = {
        "traversal": (("../../outside", b"x"), "outside"),
        "absolute": (("/etc/passwd", b"x"), "absolute"),
        "device": (("dev/sda", {"type": tarfile.BLKTYPE, "devmajor": 8}), "device node"),
        "hard-link": (("h", build.hard_link("../../../etc/shadow")), "hard link"),
        "pipe": (("p", {"type": tarfile.FIFOTYPE}), "no file, folder or link"),
    }
    for name, (entry, word) in hostile.items():
        files, _ = build.oci_files([build.layer(entry)])
        build.write_layout(place / name, files)
        refused = node("image", "import", f"oci:{place}/{name}")
        assert refused.returncode == 2, (name, refused.stdout, refused.stderr)
        assert word in refused.stderr and "layer 1 of 1" in refused.stderr, refused.stderr
    files, digest = build.oci_files([busybox_layer()])
    blob = next(one for one in files if files[one][:2] == b"\x1f\x8b")
    files[blob] = files[blob][:-8] + bytes(8)
    build.write_layout(place / "changed", files)
    changed = node("image", "import", f"oci:{place}/changed")
    assert changed.returncode in (2, 8), changed.stderr
    wrong = node("image", "import", f"oci:{place}/layout@sha256:{'1' * 64}")
    assert wrong.returncode == 8 and "pinned" in wrong.stderr, wrong.stderr
    assert node.json("image", "list") == before, "nothing of them is kept"
    store = pathlib.Path(node.state) / "node" / "jailer" / "images"
    assert not [one.name for one in store.iterdir() if one.name.startswith(".new")]


def test_a_changed_tree_is_not_run(node, place):
    files, digest = build.oci_files([busybox_layer(), build.layer(("one-more", b"x"))], tag="changed")
    build.write_layout(place / "to-change", files)
    node.ok("image", "import", f"oci:{place}/to-change", "--name", "to-change")
    wait_until(lambda: digest in json.dumps(node.json("node", "list")), "the server to hear of it", 60)
    tree = pathlib.Path(node.state) / "node" / "jailer" / "images" / f"sha256-{digest[7:]}" / "tree"
    (tree / "one-more").write_bytes(b"changed")
    refused = run(node, "--image", digest)
    assert refused.returncode == 125 and "not what was imported" in refused.stderr, refused.stderr
    node.ok("image", "remove", digest)


def test_an_image_in_use_stays(node, image):
    lease = node.ok("run", "-t", TENANT, "--image", image, "--detach", "--", "sleep", "100").strip()
    wait_until(lambda: node.json("lease", "show", lease)["state"] == "active", "the box to run")
    refused = node("image", "remove", image)
    assert refused.returncode == 6 and "in use" in refused.stderr, refused.stderr
    node.ok("lease", "end", lease)
    node.ok("lease", "show", "--wait", lease)


def test_named_mounts_only(node, image):
    done = run(node, "--image", image, "--mount", "data:/data", "--mount", "scratch:/mnt/out:rw",
               command=("sh", "-c", "cat /data/set; touch /data/x; touch /mnt/out/y && echo wrote"))
    assert "a dataset" in done.stdout and "wrote" in done.stdout, done.stdout + done.stderr
    assert "Read-only" in done.stderr or "denied" in done.stderr.lower(), done.stderr
    without = run(node, "--mount", "data:/data", command=("cat", "/data/set"))
    assert without.stdout == "a dataset", without.stderr
    for words, code, why in (
        (("--mount", "data:/data:rw"), 3, "may not write"),
        (("--mount", "secrets:/s"), 3, "may not have"),
        (("--mount", "/etc:/s"), 2, "no mount's name"),
        (("--mount", "data:/etc/x"), 2, "own folders"),
        (("--mount", "data:/data/../x"), 2, "absolute path"),
    ):
        refused = run(node, *words)
        assert refused.returncode == code and why in refused.stderr, (words, refused.returncode, refused.stderr)
    other = run(node, "--mount", "data:/data", tenant=OTHER)
    assert other.returncode == 3, other.stderr


def test_sizes_of_the_boxs_own_file_systems(node, image):
    done = run(node, "--image", image, "--shm", "8M", "--tmp", "16M",
               command=("sh", "-c", "df -k /dev/shm /tmp; dd if=/dev/zero of=/dev/shm/x bs=1M count=9; echo $?"))
    assert "8192" in done.stdout and "16384" in done.stdout, done.stdout
    assert done.stdout.splitlines()[-1] == "1", done.stdout
    refused = run(node, "--shm", "128M")
    assert refused.returncode == 3 and "boxes.yaml" in refused.stderr, refused.stderr
    huge = run(node, "--hugepages", "64M")
    assert huge.returncode == 3 and "huge pages" in huge.stderr, huge.stderr


def test_tenants_never_share_user_ids(node, image):
    def uid_of(tenant):
        done = run(node, "--image", image, tenant=tenant, command=("cat", "/proc/self/uid_map"))
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split()[1])

    first = uid_of(TENANT)
    second = uid_of(OTHER)
    assert first != second
    assert uid_of(TENANT) == first, "a tenant keeps its range"
    assert uid_of(OTHER) == second


def test_a_verifier_must_vouch(node, place, image):
    files, digest = build.oci_files([busybox_layer(), build.layer(("signed", b"x"))])
    build.write_layout(place / "signed", files)
    verifier = place / "verifier"
    heard = place / "scratch" / "heard"

    def script(text):
        verifier.write_text("#!/bin/sh\n" + text)
        verifier.chmod(0o755)
        return node("image", "import", f"oci:{place}/signed", env={"RINGFENCE_IMAGE_VERIFIER": str(verifier),
                                                                   "SECRET": "not for it"})

    place.chmod(0o755)
    refused = script("echo no signature; exit 9\n")
    assert refused.returncode == 3 and "no signature" in refused.stderr, refused.stderr
    assert digest not in json.dumps(node.json("image", "list"))
    verifier.chmod(0o777)
    open_to_all = node("image", "import", f"oci:{place}/signed", env={"RINGFENCE_IMAGE_VERIFIER": str(verifier)})
    assert open_to_all.returncode == 3 and "could be changed" in open_to_all.stderr, open_to_all.stderr
    done = script(f"{{ cat; env; id -u; }} > {heard}\n")
    assert done.returncode == 0, done.stderr
    text = heard.read_text()
    assert text.startswith(digest + "\n{") and '"layers"' in text, text
    assert "SECRET" not in text and text.split()[-1] != "0", "a clean environment, and not root"
    node.ok("image", "remove", digest)


def test_only_root_has_images(node):
    text = node.ok("image", "import", "--help")
    assert "oci:DIR" in text
    gone = node("image", "show", "no-such-image")
    assert gone.returncode == 4, gone.stderr
