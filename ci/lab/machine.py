"""One guest: a QEMU process and the channels to it.

Channels are sockets of the lab's own, so no port, file or folder is used: console (the kernel's messages and QEMU's own), stdout,
stderr and control (guest/boot says what they carry). The guest ends with the lab, however the lab ends.
"""

import os
import pathlib
import shutil
import socket
import subprocess

from lab import initramfs
from lab.errors import LabError

QEMU = "qemu-system-x86_64"
# Emulated string copies and carry-less multiplication, which packets and checksums would use, cost several times what plain code does.
CPU = {"kvm": "host", "tcg": "max,-erms,-fsrm,-pclmulqdq,-la57,-smap,-smep,-pcid"}
# panic=-1 and -no-reboot: a panic ends QEMU. Level 5: what the kernel warns of.
KERNEL_ARGUMENTS = "console=ttyS0 loglevel=5 panic=-1"
CLOCK_SOURCE = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
CHANNELS = ("console", "control", "stdout", "stderr")
SECONDS_TO_DIE = 20


class Guest:
    """A running guest. Owns its process and its channels."""

    def __init__(self, rank, process, channels):
        self.rank = rank
        self.process = process
        self.channels = channels  # {name: socket}

    def kill(self):
        """As when its power fails; what it wrote before can still be read."""
        self.process.kill()
        self.process.wait(SECONDS_TO_DIE)

    def close(self):
        self.kill()
        for channel in self.channels.values():
            channel.close()


def quoted(path):
    return str(path).replace(",", ",,")


def mac(rank):
    return bytes([0x52, 0x54, 0x00, 0x4C, 0x41, rank])


def find_qemu():
    if shutil.which(QEMU) is None:
        raise LabError(f"{QEMU} is missing: run ci/setup --for lab")
    return QEMU


def kernel_arguments(accel, clock_source=CLOCK_SOURCE):
    """The command line. An emulated processor's time stamp counter is this machine's: one for all processors of the guest, which QEMU
    never lets go back, and whose rate the guest's kernel measures. It does not trust it by itself, and asks the HPET instead: each look
    at the clock would be a system call and an exit. Where this machine's kernel trusts the counter, the guest may."""
    if accel != "tcg":
        return KERNEL_ARGUMENTS
    try:
        trusted = clock_source.read_text().strip() == "tsc"
    except OSError:
        trusted = False
    return KERNEL_ARGUMENTS + (" tsc=reliable" if trusted else "")


def qemu_command(kernel, accel, options, rank, files):
    """`files`: descriptor by name: those of CHANNELS, `initrd`, and `network` where the guest has one."""
    command = ["setpriv", "--pdeathsig", "KILL", find_qemu()]
    command += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "q35"]
    command += ["-accel", accel, "-cpu", CPU[accel], "-smp", str(options.cpus), "-m", str(options.memory)]
    command += ["-kernel", str(kernel.image), "-initrd", f"/proc/self/fd/{files['initrd']}", "-append", kernel_arguments(accel)]
    command += ["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]
    for name in CHANNELS:
        command += ["-chardev", f"socket,id={name},fd={files[name]}"]
    command += ["-serial", "chardev:console", "-device", "virtio-serial-pci"]
    for name in CHANNELS[1:]:
        command += ["-device", f"virtserialport,chardev={name},name=lab.{name}"]
    # remap: the files of several host file systems keep apart.
    command += ["-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"]
    command += ["-device", "virtio-9p-pci,fsdev=root,mount_tag=root"]
    if options.out:
        command += ["-fsdev", f"local,id=out,path={quoted(options.out)},security_model=none,multidevs=remap"]
        command += ["-device", "virtio-9p-pci,fsdev=out,mount_tag=out"]
    for drive in options.drives:
        command += ["-drive", f"file={quoted(drive)},format=raw,if=virtio,snapshot=on"]
    if "network" in files:
        command += ["-netdev", f"socket,id=network,fd={files['network']}"]
        command += ["-device", f"virtio-net-pci,netdev=network,romfile=,mac={mac(rank).hex(':')}"]
    return command


def start(kernel, accel, options, rank=0, network=None):
    """Starts a guest, which boots on its own. `network`: its end of a link (lab/network.py), or None; stays the caller's."""
    settings = {
        "kind": options.device,
        "rank": rank,
        "hosts": options.hosts,
        "address": options.network[1] if options.network else "",
        "mtu": options.mtu,
        "netem": options.netem,
        "accel": accel,
        "out": options.out,
        "directory": options.directory,
        "command": list(options.command),
        "environment": [f"{name}={value}" for name, value in options.environment.items()],
    }
    initrd = os.memfd_create("initrd")
    ours, theirs = {}, {}
    try:
        with open(initrd, "wb", closefd=False) as file:
            file.write(initramfs.make(kernel, settings))
        for name in CHANNELS:
            ours[name], theirs[name] = socket.socketpair()
            ours[name].setblocking(False)
        files = {"initrd": initrd, **{name: end.fileno() for name, end in theirs.items()}}
        if network is not None:
            files["network"] = network.fileno()
        process = subprocess.Popen(qemu_command(kernel, accel, options, rank, files), pass_fds=tuple(files.values()),
                                   stdin=subprocess.DEVNULL, stdout=theirs["console"], stderr=theirs["console"],
                                   start_new_session=True)
    except BaseException:
        for end in ours.values():
            end.close()
        raise
    finally:
        os.close(initrd)
        for end in theirs.values():
            end.close()
    return Guest(rank, process, ours)
