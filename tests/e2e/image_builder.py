"""Images that tests build themselves: OCI layouts and archives, honest and hostile."""

import gzip
import hashlib
import io
import json
import pathlib
import tarfile


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(*entries):
    """A layer of (name, bytes or dict of TarInfo's fields)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, what in entries:
            info = tarfile.TarInfo(name)
            data = b""
            if isinstance(what, bytes):
                data = what
                info.mode = 0o755
            else:
                fields = dict(what)
                data = fields.pop("data", b"")
                for field, value in fields.items():
                    setattr(info, field, value)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def folder(mode=0o755):
    return {"type": tarfile.DIRTYPE, "mode": mode}


def link(target):
    return {"type": tarfile.SYMTYPE, "linkname": target}


def hard_link(target):
    return {"type": tarfile.LNKTYPE, "linkname": target}


def config(layers, **process):
    return json.dumps({
        "os": "linux", "architecture": "amd64", "config": process,
        "rootfs": {"type": "layers", "diff_ids": [digest(one) for one in layers]},
    }).encode()


def oci_files(layers, tag="v1", pack=gzip.compress, **process):
    """The files of an OCI layout, and the image's digest."""
    settings = config(layers, **process)
    packed = [pack(one) for one in layers]
    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                   "digest": digest(settings), "size": len(settings)},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                    "digest": digest(one), "size": len(one)} for one in packed],
    }).encode()
    index = json.dumps({
        "schemaVersion": 2,
        "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json",
                       "digest": digest(manifest), "size": len(manifest),
                       "annotations": {"org.opencontainers.image.ref.name": tag}}],
    }).encode()
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
    for blob in [settings, manifest, *packed]:
        files["blobs/sha256/" + digest(blob)[7:]] = blob
    return files, digest(manifest)


def write_layout(path, files):
    for name, data in files.items():
        place = pathlib.Path(path) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def write_tar(path, files):
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def docker_files(layers, name, **process):
    """What `docker save` writes, and the image's id."""
    settings = config(layers, **process)
    files = {"config.json": settings}
    names = []
    for number, one in enumerate(layers):
        names.append(f"{number}/layer.tar")
        files[names[-1]] = one
    files["manifest.json"] = json.dumps(
        [{"Config": "config.json", "RepoTags": [name], "Layers": names}]).encode()
    return files, digest(settings)
