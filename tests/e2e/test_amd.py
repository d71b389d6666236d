"""Goal: a node of AMD GPUs inventories, scrubs, leases and runs boxes as one of NVIDIA's does, and a
box has /dev/kfd, its own render node and no other.

Method: the real command line against a real server, agent and jailer; three simulated MI300X. A job
leaves a mark in its card's memory through HIP; the next receipt counts it.
"""

import json

import pytest
from conftest import start, wait_until

VISION = ("-t", "acme/research/vision")

HIP = """
import ctypes
hip = ctypes.CDLL("libamdhip64.so")
count, at = ctypes.c_int(), ctypes.c_void_p()
assert hip.hipGetDeviceCount(ctypes.byref(count)) == 0
assert count.value == 1, count.value
assert hip.hipMalloc(ctypes.byref(at), ctypes.c_size_t(4096)) == 0
mark = b"secret" * 100
assert hip.hipMemcpyHtoD(at, mark, ctypes.c_size_t(len(mark))) == 0
print("left", len(mark))
"""


@pytest.fixture(scope="module")
def amd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("amd")
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({"gpus": [{"vendor": "amd"}] * 3}))
    ringfence = start(str(folder / "state"), ("--scenario", str(scenario)))
    yield ringfence
    ringfence.down()


def test_a_box_has_its_own_render_node_and_the_card_is_scrubbed_after(amd):
    wait_until(lambda: [gpu["state"] for gpu in amd.json("gpu", "list")] == ["free"] * 3,
               "three scrubbed GPUs")
    assert {gpu["model"] for gpu in amd.json("gpu", "list")} == {"AMD Instinct MI300X"}
    seen = amd.ok("run", *VISION, "--", "sh", "-c",
                  "ls /dev/kfd /dev/dri; ls /dev | grep nvidia; "
                  "ls /run/ringfence/driver/memory | wc -l").split()
    assert seen[0] == "/dev/kfd"
    nodes = [word for word in seen if word.startswith("renderD")]
    assert len(nodes) == 1 and seen[-1] == "1", seen
    assert not any("nvidia" in word for word in seen), seen
    assert "left 600" in amd.ok("run", *VISION, "--", "python3", "-c", HIP)
    amd.gpus_are_back()
