"""KVM or TCG, QEMU's emulation: KVM only where a guest really comes up with it.

/dev/kvm says little: in a virtual machine it may be there, and guests abort or hang. So a guest is booted with KVM and must say a word
within a deadline; the answer is remembered in the cache until this machine boots again. A cache that cannot be written is asked again
by each run.
"""

import os
import pathlib
import select
import time

from lab import machine
from lab.options import Options

DEVICE = "/dev/kvm"
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
WORD = b"lab: up"  # guest/init's first
SECONDS_TO_SPEAK = 8
MOST_CONSOLE_BYTES = 1 << 20


def comes_up(kernel, start=machine.start, seconds=SECONDS_TO_SPEAK):
    """Whether a guest says its word with KVM in time."""
    guest = start(kernel, "kvm", Options())
    try:
        deadline = time.monotonic() + seconds
        heard = b""
        console = guest.channels["console"]
        while WORD not in heard and len(heard) < MOST_CONSOLE_BYTES:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([console], [], [], left)[0]:
                return False
            piece = console.recv(65536)
            if not piece:
                return False
            heard += piece
        return WORD in heard
    finally:
        guest.close()


def remembered(cache):
    """What was found since this machine booted, or None."""
    try:
        boot, answer = (cache / "accelerator").read_text().split()
    except (OSError, ValueError):
        return None
    return answer if boot == BOOT_ID.read_text().strip() and answer in machine.CPU else None


def remember(cache, answer):
    mine = cache / f"accelerator.{os.getpid()}"
    try:
        mine.write_text(f"{BOOT_ID.read_text().strip()} {answer}\n")
        mine.rename(cache / "accelerator")
    except OSError:
        return  # read-only


def choose(wanted, kernel, cache):
    if wanted != "auto":
        return wanted
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return "tcg"
    answer = remembered(cache)
    if answer is None:
        answer = "kvm" if comes_up(kernel) else "tcg"
        remember(cache, answer)
    return answer
