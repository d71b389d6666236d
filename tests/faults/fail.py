"""The table of failpoints that a running Ringfence shares with its test (src/os/failpoint.h)."""

import mmap
import pathlib
import struct
import time

MAGIC = b"RFFAIL01"
SLOT_BYTES = 64
SLOTS = 255
NOTHING, STOP, KILL, ERROR, TORN, DELAY = range(6)
FOREVER = 0xFFFFFFFF
FIELDS = ("action", "argument", "skip", "times", "only_pid", "hits", "stopped_pid")


class Failpoints:
    """Arms places, sees them hit, and moves the clock. The processes map the same file."""

    def __init__(self, path, names):
        self.path = pathlib.Path(path)
        self.names = list(names)
        self.path.write_bytes(MAGIC + bytes(SLOT_BYTES * (SLOTS + 1) - len(MAGIC)))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def _at(self, name, field):
        return SLOT_BYTES * (1 + self.names.index(name)) + 4 * FIELDS.index(field)

    def get(self, name, field):
        return struct.unpack_from("<I", self.memory, self._at(name, field))[0]

    def _set(self, name, field, value):
        struct.pack_into("<I", self.memory, self._at(name, field), value)

    def arm(self, name, action, argument=0, skip=0, times=1, only_pid=0):
        self._set(name, "action", NOTHING)
        for field, value in (("argument", argument), ("skip", skip), ("times", times), ("only_pid", only_pid)):
            self._set(name, field, value)
        self._set(name, "action", action)

    def disarm(self, name=None):
        """Also lets go whoever is stopped there."""
        for one in [name] if name else self.names:
            self._set(one, "action", NOTHING)

    def hits(self, name):
        return self.get(name, "hits")

    def stopped(self, name):
        """The process that is stopped there (as it knows itself), or 0."""
        return self.get(name, "stopped_pid")

    def forget_stopped(self, name):
        self._set(name, "stopped_pid", 0)

    def move_clock(self, seconds):
        struct.pack_into("<q", self.memory, 8, int(seconds * 1000))

    def wait_hit(self, name, before, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.hits(name) > before:
                return True
            time.sleep(0.005)
        return False
