"""Where what was fetched and built is kept: TOKAMAK_LAB_CACHE, else tokamak-lab in XDG_CACHE_HOME or in ~/.cache.

~ is the user's home as the system knows it, whatever HOME says: Bazel gives tests another. A folder inside appears at once and whole,
by rename, so that a reader needs no lock; writers take `locked`. Runs read it only: it may be read-only there.
"""

import contextlib
import fcntl
import os
import pathlib
import pwd
import shutil
import tempfile

from lab.errors import LabError


def home():
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.path.expanduser("~")


def folder():
    named = os.environ.get("TOKAMAK_LAB_CACHE")
    if named:
        return pathlib.Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home(), ".cache")
    return pathlib.Path(base, "tokamak-lab")


@contextlib.contextmanager
def locked(cache):
    """One writer at a time, also between processes."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = open(cache / "lock", "w", encoding="ascii")
    except OSError as error:
        raise LabError(f"the cache {cache} cannot be written ({error.strerror}): run ci/setup --for lab, or set TOKAMAK_LAB_CACHE") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def workshop(cache):
    """A folder for work in progress on the cache's file system, removed at the end. Call it with the lock held."""
    for abandoned in cache.glob("work.*"):  # by a writer that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    made = pathlib.Path(tempfile.mkdtemp(prefix="work.", dir=cache))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
