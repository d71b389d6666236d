"""A private PostgreSQL for end-to-end tests: tests/postgres.sh with a Python face."""

import os
import pathlib
import shutil
import subprocess
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "postgres.sh"
ROOM = 512 * 1024 * 1024  # bytes; in memory it is quicker, where there is room


class Postgres:
    """Started at once; `with Postgres() as postgres:` stops it and removes its folder."""

    def __init__(self):
        shared = pathlib.Path("/dev/shm")
        base = shared if shared.is_dir() and shutil.disk_usage(shared).free > ROOM else "/tmp"
        self.folder = tempfile.mkdtemp(prefix="ringfence-postgres-", dir=base)
        self.url = self._script("start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _script(self, command):
        done = subprocess.run(
            [SCRIPT, command, self.folder],
            env={**os.environ, "RINGFENCE_OWNER": str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def new_database(self):
        """The URL of another, empty database."""
        return self._script("database")

    def kill(self):
        """kill -9, all of its processes at once."""
        self._script("kill")

    def pause(self):
        self._script("pause")

    def resume(self):
        self._script("resume")

    def restart(self):
        self._script("restart")

    def stop(self):
        self._script("stop")

    def sql(self, text, database="ringfence"):
        """What psql prints for a statement, unaligned."""
        return subprocess.run(
            ["psql", "-qXAt", "-h", self.folder, "-U", "ringfence", "-d", database, "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        ).stdout.strip()
