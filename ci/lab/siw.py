"""SoftiWARP's kernel module, which Debian does not build: made from Debian's kernel source and headers, outside of the tree.

It is put beside the kernel's own modules in the cache, so that modprobe finds it.
"""

import shutil

from lab import kernel as kernels
from lab import packages

SOURCE = "linux-source-6.1"
SIW = f"{SOURCE}/drivers/infiniband/sw/siw"


MODULE = "extra/siw.ko"


def is_built(kernel):
    """Whether modprobe would find it: its entry in the index comes last."""
    return f"{MODULE}:" in (kernel.modules / "modules.dep").read_text()


def build(kernel, work):
    """Builds the module where it is not there. Call it with the cache's lock held."""
    if is_built(kernel):
        return
    common = kernel.abi.rsplit("-", 1)[0] + "-common"
    headers = [f"linux-headers-{kernel.abi}", f"linux-headers-{common}"]
    # Their names have no kernel's number: while Debian signs the next kernel, apt has them for that only. The headers take newer ones.
    tools = {name: packages.candidate(name) for name in ["linux-kbuild-6.1", "linux-compiler-gcc-12-x86"]}
    debs = packages.fetch({**{name: kernel.version for name in [*headers, SOURCE]}, **tools}, work)
    tree = work / "headers"
    for name in [*headers, *tools]:
        packages.unpack(debs[name], tree)
    build_folder = tree / "usr/src" / f"linux-headers-{kernel.abi}"
    # The one absolute path in Debian's headers: that of the headers which all flavours share.
    makefile = build_folder / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{tree}/usr/src/"))

    packages.pipe(
        ["dpkg-deb", "--fsys-tarfile", str(debs[SOURCE])],
        ["tar", "-x", "--to-stdout", f"./usr/src/{SOURCE}.tar.xz"],
        ["tar", "-x", "--xz", "-C", str(work), SIW],
    )
    what = "cannot build SoftiWARP"
    packages.output(["make", "-C", str(build_folder), f"M={work / SIW}", "CONFIG_RDMA_SIW=m", "modules"], what)
    packages.output(["strip", "--strip-debug", str(work / SIW / "siw.ko")], what)
    place = kernel.modules / MODULE
    place.parent.mkdir(exist_ok=True)
    shutil.copyfile(work / SIW / "siw.ko", work / "siw.ko")
    (work / "siw.ko").rename(place)
    kernels.index_modules(kernel.folder, kernel.abi)
