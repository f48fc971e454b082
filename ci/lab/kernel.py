"""Debian's kernel and its modules, with busybox, by version in the cache: linux-ABI_VERSION/{vmlinux,busybox,lib/modules/ABI,complete}.

busybox-static is not installed: it would drive out Debian's busybox, which many machines boot with.

The kernel is kept decompressed: so it boots in half the time. Runs take the newest that is there, without asking apt.
"""

import lzma
import platform
import shutil
import typing

from lab import packages
from lab.errors import LabError

KEPT = 2  # versions: a run may still use the one before
# Never loaded in a guest, and half of the package.
USELESS = ["drivers/gpu", "drivers/iio", "drivers/media", "drivers/net/wireless", "drivers/staging", "sound"]
BUSYBOX = "busybox-static"
XZ_MAGIC = b"\xfd7zXZ\x00"


class Kernel(typing.NamedTuple):
    folder: typing.Any  # pathlib.Path
    abi: str  # as uname -r says it
    version: str  # of the Debian package

    @property
    def image(self):
        return self.folder / "vmlinux"

    @property
    def busybox(self):
        return self.folder / "busybox"

    @property
    def modules(self):
        return self.folder / "lib/modules" / self.abi


def in_folder(folder):
    abi, version = folder.name.removeprefix("linux-").split("_", 1)
    return Kernel(folder, abi, version)


def cached(cache):
    """The kernels that are there, newest first."""
    whole = [marker.parent for marker in cache.glob("linux-*_*/complete")]
    return [in_folder(folder) for folder in sorted(whole, key=lambda f: (f / "complete").stat().st_mtime, reverse=True)]


def newest(cache):
    found = cached(cache)
    return found[0] if found else None


def decompressed(vmlinuz):
    """The ELF image that is packed in a Debian vmlinuz."""
    at = vmlinuz.find(XZ_MAGIC)
    while at >= 0:
        try:
            image = lzma.LZMADecompressor().decompress(vmlinuz[at:])
            if image.startswith(b"\x7fELF"):
                return image
        except lzma.LZMAError:
            pass  # the magic's bytes by chance, within code
        at = vmlinuz.find(XZ_MAGIC, at + 1)
    raise LabError("Debian's vmlinuz holds no xz-compressed kernel; the lab does not know this format")


def fetch(cache, work):
    """The kernel that apt would install, fetched where it is not there. Call it with the cache's lock held."""
    if platform.machine() != "x86_64":
        raise LabError(f"the lab runs on x86-64 only, this machine is {platform.machine()}")
    image_package = packages.dependency("linux-image-amd64", r"linux-image-\S+")
    abi = image_package.removeprefix("linux-image-")
    version = packages.candidate(image_package)
    folder = cache / f"linux-{abi}_{version}"
    if (folder / "complete").exists():
        return in_folder(folder)

    debs = packages.fetch({image_package: version, BUSYBOX: packages.candidate(BUSYBOX)}, work)
    staged = work / "linux"
    excluded = [f"--exclude=./lib/modules/{abi}/kernel/{useless}" for useless in USELESS]
    packages.unpack(debs[image_package], staged, *excluded, f"./boot/vmlinuz-{abi}", f"./lib/modules/{abi}")
    vmlinuz = staged / "boot" / f"vmlinuz-{abi}"
    (staged / "vmlinux").write_bytes(decompressed(vmlinuz.read_bytes()))
    vmlinuz.unlink()
    packages.unpack(debs[BUSYBOX], staged, "./bin/busybox")
    (staged / "bin/busybox").rename(staged / "busybox")
    index_modules(staged, abi)
    (staged / "complete").touch()
    shutil.rmtree(folder, ignore_errors=True)
    staged.rename(folder)
    for old in cached(cache)[KEPT:]:
        shutil.rmtree(old.folder, ignore_errors=True)
    return in_folder(folder)


def index_modules(folder, abi):
    packages.output(["depmod", "--basedir", str(folder), abi], "cannot index the kernel's modules")
