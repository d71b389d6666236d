"""Goal: a developer's job runs in a box with exactly its GPU, its output and exit code come back,
and the GPU is scrubbed before anybody else gets it.

Method: the real command line against a real server, agent and jailer; simulated GPUs.
"""

import json
import os
import signal
import subprocess

from conftest import PROGRAM, wait_until

VISION = ("-t", "acme/research/vision")
PRINT_GPUS = "for f in /dev/nvidia[0-9]*; do echo $f; done"

# Through the CUDA driver interface, as any program would: writes a mark into the GPU's memory and
# leaves without freeing it, or looks for one.
CUDA = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def ok(code): assert code == 0, code
ok(cuda.cuInit(0))
count = ctypes.c_int()
ok(cuda.cuDeviceGetCount(ctypes.byref(count)))
device, context = ctypes.c_int(), ctypes.c_void_p()
ok(cuda.cuDeviceGet(ctypes.byref(device), 0))
ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
at, size = ctypes.c_uint64(), 1 << 20
ok(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)))
if sys.argv[1] == "leave":
    mark = b"weights of acme" * 4096
    ok(cuda.cuMemcpyHtoD_v2(at, mark, ctypes.c_size_t(len(mark))))
else:
    seen = ctypes.create_string_buffer(size)
    ok(cuda.cuMemcpyDtoH_v2(seen, at, ctypes.c_size_t(size)))
    print("found" if b"weights of acme" in seen.raw else "clean")
print("gpus", count.value)
"""

NVML = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
count = ctypes.c_uint()
assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
for i in range(count.value):
    handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96)
    assert nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)) == 0
    assert nvml.nvmlDeviceGetUUID(handle, uuid, 96) == 0
    print(uuid.value.decode())
"""


def lease_of(ringfence, done):
    leases = ringfence.json("lease", "list", "--all")
    return leases[0]


def all_free(ringfence):
    wait_until(lambda: ringfence.json("status")["gpus"]["free"] == 8, "all GPUs to be free")


def closed(ringfence, lease_id):
    def check():
        lease = ringfence.json("lease", "show", lease_id)
        return lease if lease["state"] in ("closed", "quarantined") else None

    return wait_until(check, f"{lease_id} to close")


def test_output_and_exit_code_come_back(ringfence, developer):
    done = ringfence("run", *VISION, "--", "sh", "-c", "echo out; echo err >&2; exit 7", token=developer)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "out\n"
    assert "err\n" in done.stderr


def test_much_output_arrives_whole_and_in_order(ringfence, developer):
    done = ringfence("run", *VISION, "--", "seq", "1", "200000", token=developer)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"{i}\n" for i in range(1, 200001))


def test_a_signal_is_passed_on_as_a_code(ringfence, developer):
    done = ringfence("run", *VISION, "--", "sh", "-c", "kill -9 $$", token=developer)
    assert done.returncode == 137, done.stderr


def test_the_box_sees_exactly_its_gpu(ringfence, developer):
    done = ringfence("run", *VISION, "--", "sh", "-c", PRINT_GPUS, token=developer)
    assert len(done.stdout.split()) == 1, done.stdout + done.stderr
    seen = ringfence("run", *VISION, "--", "python3", "-c", NVML, token=developer)
    assert seen.returncode == 0, seen.stderr
    lease = lease_of(ringfence, seen)
    assert seen.stdout.split() == lease["gpus"]


def test_several_gpus(ringfence, developer):
    done = ringfence("run", *VISION, "--gpus", "2", "--", "python3", "-c", NVML, token=developer)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(lease_of(ringfence, done)["gpus"])
    assert len(done.stdout.split()) == 2


def test_what_a_job_leaves_is_found_counted_and_gone(ringfence, developer):
    # With all GPUs free, the first one is leased: so the second job gets the GPU of the first.
    all_free(ringfence)
    left = ringfence("run", *VISION, "--", "python3", "-c", CUDA, "leave", token=developer)
    assert left.returncode == 0, left.stderr
    lease = closed(ringfence, lease_of(ringfence, left)["id"])
    assert lease["state"] == "closed", lease
    assert len(lease["receipts"]) == 1
    [gpu] = lease["gpus"]
    shown = ringfence.ok("lease", "show", lease["id"])
    assert lease["receipts"][0] in shown and "simulated" in shown
    entries = ringfence.json("audit", "list", "--lease", lease["id"])
    scrub = [item["entry"] for item in entries if item["entry"]["action"] == "gpu.scrub"]
    assert len(scrub) == 1 and scrub[0]["detail"]["residue_bytes"] >= 15 * 4096
    assert scrub[0]["detail"]["simulated"] is True
    all_free(ringfence)
    look = ringfence("run", *VISION, "--", "python3", "-c", CUDA, "look", token=developer)
    assert lease_of(ringfence, look)["gpus"] == [gpu]
    assert look.stdout.startswith("clean"), look.stdout + look.stderr


def test_ctrl_c_ends_the_job(ringfence, developer):
    process = subprocess.Popen(
        [PROGRAM, "run", *VISION, "--", "sh", "-c", "echo started; sleep 600"],
        env=ringfence.environment(developer), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert closed(ringfence, ringfence.json("lease", "list", "--all")[0]["id"])["state"] == "closed"


def test_detach_logs_and_end(ringfence, developer):
    lease_id = ringfence.ok("run", *VISION, "--detach", "--", "sh", "-c", "echo hello; sleep 600",
                            token=developer).strip()
    wait_until(lambda: ringfence.ok("lease", "logs", lease_id, token=developer) == "hello\n", "its output")
    assert ringfence.json("lease", "show", lease_id, token=developer)["state"] == "active"
    ringfence.ok("lease", "end", lease_id, token=developer)
    lease = closed(ringfence, lease_id)
    assert lease["state"] == "closed"
    states = [step["state"] for step in lease["steps"]]
    assert states == ["requested", "admitted", "placed", "preparing", "active", "ending", "scrubbing", "closed"]


def test_timeout(ringfence, developer):
    done = ringfence("run", *VISION, "--timeout", "1s", "--", "sleep", "600", token=developer)
    assert done.returncode == 124, done.stderr


def test_memory_limit(ringfence, developer):
    done = ringfence("run", *VISION, "--memory", "64M", "--", "python3", "-c",
                     "x = bytearray(512 << 20); print(len(x))", token=developer)
    assert done.returncode != 0 and "536870912" not in done.stdout


def test_environment_is_the_one_asked_for(ringfence, developer):
    done = ringfence("run", *VISION, "--env", "EPOCHS=3", "--", "env", token=developer)
    assert "EPOCHS=3\n" in done.stdout
    assert "RINGFENCE_TOKEN" not in done.stdout and developer not in done.stdout


def test_values_of_the_environment_are_shown_to_nobody(ringfence, developer):
    words = ("run", *VISION, "--detach", "-e", "API_KEY=hunter2", "-e", "env=hunter3", "--", "true")
    lease = ringfence.ok(*words, token=developer).strip()
    for text in (ringfence.ok("lease", "show", lease, "--output", "json"),
                 ringfence.ok("lease", "list", "--all", "--output", "json")):
        assert "hunter" not in text
        assert '"API_KEY"' in text and "(hidden)" in text


def test_a_command_that_does_not_exist(ringfence, developer):
    done = ringfence("run", *VISION, "--", "no-such-program", token=developer)
    assert done.returncode == 127
    assert "no-such-program" in done.stderr


def test_more_gpus_than_there_are(ringfence):
    done = ringfence("run", "-t", "acme", "--gpus", "60", "--", "true")
    assert done.returncode in (2, 7)
    assert "gpus" in done.stderr or "quota" in done.stderr


def test_bad_requests_name_the_field_and_change_nothing(ringfence, developer):
    before = len(ringfence.json("lease", "list", "--all"))
    cases = [
        (["run", "-t", "acme/reserch/vision", "--", "true"], 4, "acme/research/vision"),
        (["run", "-t", "Bad Tenant", "--", "true"], 2, "tenant"),
        (["run", *VISION, "--memory", "1K", "--", "true"], 2, "memory"),
        (["run", *VISION, "--env", "LD_PRELOAD=/x", "--", "true"], 2, "LD_PRELOAD"),
        (["run", *VISION], 2, ""),
        (["lease", "show", "lease-none"], 4, "lease"),
        (["lease", "end", "../../etc/passwd"], 2, "path"),
    ]
    for words, code, text in cases:
        done = ringfence(*words)
        assert done.returncode == code, (words, done.returncode, done.stderr)
        assert text in done.stderr, (words, done.stderr)
    assert len(ringfence.json("lease", "list", "--all")) == before


def test_status_is_healthy(ringfence):
    status = ringfence.json("status")
    assert status["healthy"] is True, status
    assert status["simulated"] is True
    assert "simulated" in ringfence.ok("gpu", "list")


def test_an_end_that_comes_while_the_job_starts_is_not_lost(ringfence, developer):
    for _ in range(6):
        lease_id = ringfence.ok("run", *VISION, "--detach", "--", "sleep", "600", token=developer).strip()
        ringfence.ok("lease", "end", lease_id, token=developer)
        lease = closed(ringfence, lease_id)
        assert lease["state"] == "closed" and lease.get("exit_code") in (125, 143), lease


def test_ctrl_c_at_any_moment_leaves_no_job_behind(ringfence, developer):
    for milliseconds in (5, 15, 30, 60, 120):
        process = subprocess.Popen(
            [PROGRAM, "run", *VISION, "--", "sleep", "600"],
            env=ringfence.environment(developer), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # Whoever runs the tests in the background has it ignored, and that is inherited.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            process.wait(timeout=milliseconds / 1000)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode != 0

    def idle():
        return not [one for one in ringfence.json("lease", "list", "--all") if one["state"] != "closed"]

    wait_until(idle, "every lease to end")


def test_an_empty_token_is_nobody(ringfence):
    done = ringfence("whoami", env={"RINGFENCE_TOKEN": ""})
    assert done.returncode == 2 and "RINGFENCE_TOKEN" in done.stderr
