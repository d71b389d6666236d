"""Goal: no failpoint is in a release.

Method: the preset must not ask for them, and objects compiled as a release's must define and need nothing.
usage: release_check.py CMakePresets.json OBJECT...
"""

import json
import subprocess
import sys


def main(presets_path, *objects):
    assert objects, "no objects to look at"
    with open(presets_path) as file:
        presets = {one["name"]: one.get("cacheVariables", {}) for one in json.load(file)["configurePresets"]}
    assert "RINGFENCE_FAILPOINTS" not in presets["release"] and "RINGFENCE_FAILPOINTS" not in presets["base"]
    assert presets["test"]["RINGFENCE_FAILPOINTS"] == "ON"
    for path in objects:
        symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        assert not symbols.strip(), f"{path} holds {symbols}"
    print(len(objects), "objects without a symbol")


main(*sys.argv[1:])
