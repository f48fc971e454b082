"""The guest's first file system: busybox, the modules that reach this machine's files, and what the guest is told.

It is made for each guest, in memory. Its /init mounts the rest (guest/init).
"""

import os
import pathlib
import shlex

GUEST = pathlib.Path(__file__).parent / "guest"
# What mounts the root: this machine's files by 9p, below a layer for the guest's writes.
MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]


def archive(files):
    """A cpio archive (newc) of {path: (mode, bytes)}; folders are made as needed."""
    folders = {str(parent) for path in files for parent in pathlib.PurePath(path).parents if str(parent) != "."}
    entries = [(path, 0o040755, b"") for path in sorted(folders)]
    entries += [(path, 0o100000 | mode, content) for path, (mode, content) in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    made = bytearray()
    for number, (path, mode, content) in enumerate(entries, 1):
        name = path.encode() + b"\0"
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0]
        made += b"070701" + b"".join(b"%08x" % field for field in fields) + name
        made += b"\0" * (-len(made) % 4) + content
        made += b"\0" * (-len(made) % 4)
    return bytes(made)


def load_order(dependencies, names):
    """The files of the named modules and of all that they need, in an order in which they load, from modules.dep's text."""
    needs = {}
    for line in dependencies.splitlines():
        path, _, others = line.partition(":")
        needs[path] = others.split()
    by_name = {pathlib.PurePath(path).name.removesuffix(".ko").replace("-", "_"): path for path in needs}
    order = []
    for name in names:
        path = by_name.get(name)
        if path is None:
            continue  # built into the kernel; a guest that lacks it says so
        # depmod lists all that a module needs, the first to load last.
        for one in [*reversed(needs[path]), path]:
            if one not in order:
                order.append(one)
    return order


def shell_settings(settings):
    """Assignments that bash reads: of a text, an array for a list."""
    lines = []
    for name, value in settings.items():
        words = " ".join(map(shlex.quote, value)) if isinstance(value, list) else None
        lines.append(f"{name}=({words})" if words is not None else f"{name}={shlex.quote(str(value))}")
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def make(kernel, settings):
    """The archive for a guest with this kernel, which is told `settings` (guest/boot says which there are)."""
    order = load_order((kernel.modules / "modules.dep").read_text(), MODULES)
    files = {
        "init": (0o755, (GUEST / "init").read_bytes()),
        "bin/busybox": (0o755, kernel.busybox.read_bytes()),
        "modules/order": (0o644, "".join(f"{os.path.basename(path)}\n" for path in order).encode()),
        "lab/boot": (0o755, (GUEST / "boot").read_bytes()),
        "lab/netem_limit": (0o644, (GUEST / "netem_limit").read_bytes()),
        "lab/settings": (0o644, shell_settings(settings)),
        "lab/paths": (0o644, shell_settings({"abi": kernel.abi, "modules": kernel.modules, "out": settings["out"]})),
    }
    for path in order:
        files[f"modules/{os.path.basename(path)}"] = (0o644, (kernel.modules / path).read_bytes())
    for path in sorted((GUEST / "bin").iterdir()):
        files[f"lab/bin/{path.name}"] = (0o755, path.read_bytes())
    # Mount points.
    for name in ("dev", "proc", "sys", "host", "layer", "root"):
        files[f"{name}/.lab"] = (0o644, b"")
    return archive(files)
