"""Where guests' output goes: to the lab's own, as it comes; of several guests line by line, with the rank in front."""

import os
import re

MOST_LINE_BYTES = 65536  # a longer line is cut in pieces
MOST_CONSOLE_BYTES = 1 << 20
LINES_SHOWN = 60
COMPLAINT = re.compile(rb"^.*(?:BUG: |WARNING: |Oops: |general protection fault|Kernel panic|blocked for more than).*$", re.MULTILINE)


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


class Stream:
    """Passes on what a guest's command writes to one of its outputs."""

    def __init__(self, descriptor, prefix=b""):
        self.descriptor = descriptor
        self.prefix = prefix
        self.line = b""

    def feed(self, data):
        if not self.prefix:
            write_all(self.descriptor, data)
            return
        *lines, self.line = (self.line + data).split(b"\n")
        if len(self.line) > MOST_LINE_BYTES:
            lines.append(self.line)
            self.line = b""
        if lines:
            write_all(self.descriptor, b"".join(self.prefix + line + b"\n" for line in lines))

    def end(self):
        if self.line:
            self.feed(b"\n")


class Console:
    """What a guest's kernel, its first process and QEMU said; the end of it, when it is much."""

    def __init__(self):
        self.text = b""

    def feed(self, data):
        self.text = (self.text + data)[-MOST_CONSOLE_BYTES:]

    def last_lines(self):
        lines = self.text.replace(b"\r", b"").decode(errors="replace").splitlines()
        return lines[-LINES_SHOWN:]

    def trouble(self):
        """What the guest itself said was wrong, or ""."""
        said = re.findall(rb"^lab: (.*?)\r?$", self.text, re.MULTILINE)
        said = [line for line in said if line != b"up"]
        return said[-1].decode(errors="replace") if said else ""

    def complaints(self):
        """The lines in which the kernel reports a fault of its own."""
        return [line.strip().decode(errors="replace") for line in COMPLAINT.findall(self.text)]
