"""What ci/softroce is asked for, checked before anything is started."""

import argparse
import dataclasses
import ipaddress
import os
import re
import shlex

MOST_HOSTS = 3
CPUS = range(1, 65)
MTUS = range(576, 65536)  # of veth and virtio-net
SECONDS = range(1, 86401)
MEBIBYTES = range(256, 1048577)
# Not the caller's environment: a run shall not depend on who starts it.
ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/run/lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TERM": "dumb",
}

DESCRIPTION = """Boots Debian's kernel in QEMU with software RDMA devices, runs COMMAND there and ends with its exit status. The guest's root is
this machine's, read-only below what the guest writes, so programs run in place, in the current folder. Needs neither root, nor a
kernel module, nor RDMA hardware. docs/softroce-lab.md tells more."""

EPILOG = """COMMAND finds in its environment:
  TOKAMAK_LAB_RANK, TOKAMAK_LAB_HOSTS     number of this guest from 0 on, and of how many
  TOKAMAK_LAB_DEVICES, TOKAMAK_LAB_DEVICE its devices (rxe0 rxe1, or siw0 siw1; with several guests rxe0 or siw0), and the first
  TOKAMAK_LAB_NETDEVS                     the network interface of each device (v0 v1)
  TOKAMAK_LAB_ADDRESSES, TOKAMAK_LAB_ADDRESS  the IPv4 address of each device, and of the first: 10.0.0.1 on
  TOKAMAK_LAB_PEERS                       the other guests' addresses, by rank; of one guest, the second device's
  TOKAMAK_LAB_OUT                         the folder of --out, which all guests share; empty without one
  TOKAMAK_LAB_KIND, TOKAMAK_LAB_ACCEL     rxe or siw; kvm or tcg
and beside its PATH
  lab-barrier     waits until every guest that still runs has called it
  lab-kill RANK   the guest RANK is no more, at once, as when its power fails; its exit status does not count

Exit status: the command's; of several guests' the first, by rank, that is not 0. 124 when --timeout ended it, 125 when the lab
could not run it, 2 for arguments, 128 + N for signal N."""


@dataclasses.dataclass(frozen=True)
class Options:
    command: tuple = ()
    device: str = "rxe"
    hosts: int = 1
    netem: str = ""
    mtu: int = 9000
    accel: str = "auto"
    cpus: int = 1
    memory: int = 2048  # MiB
    timeout: float = 300
    out: str = ""
    drives: tuple = ()
    network: tuple = ()  # descriptor of a datagram socket, the guest's IPv4 address there
    environment: dict = dataclasses.field(default_factory=dict)
    directory: str = ""
    prepare: bool = False


def whole_number(allowed):
    def parse(text):
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) not in allowed:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {allowed.start} to {allowed.stop - 1}")
        return int(text)

    return parse


def variable(text):
    name, equals, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise argparse.ArgumentTypeError(f"{text!r} is neither NAME=VALUE nor NAME")
    if not equals and name not in os.environ:
        raise argparse.ArgumentTypeError(f"{name} has no value here; give it one: {name}=VALUE")
    return name, value if equals else os.environ[name]


def network(text):
    descriptor, equals, address = text.partition("=")
    if not equals or not re.fullmatch(r"[0-9]{1,6}", descriptor):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form DESCRIPTOR=ADDRESS, as in 7=10.0.0.3")
    try:
        return int(descriptor), str(ipaddress.IPv4Address(address))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def netem(text):
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    if not words:
        raise argparse.ArgumentTypeError("an empty text is no netem; see tc-netem(8)")
    return " ".join(words)


def existing_file(text):
    if not os.path.isfile(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no file")
    return os.path.abspath(text)


def parser():
    made = argparse.ArgumentParser(
        prog="ci/softroce",
        usage="ci/softroce [option]... -- COMMAND [ARGUMENT]...",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    defaults = Options()
    add = made.add_argument
    add("--device", choices=["rxe", "siw"], default=defaults.device, help="Soft-RoCE (the default) or SoftiWARP")
    add("--hosts", type=int, choices=range(1, MOST_HOSTS + 1), default=defaults.hosts,
        help="guests: 1 (the default) with two devices on a virtual cable, or several with one device each on one network")
    add("--network", type=network, default=defaults.network, metavar="FD=IP",
        help="one guest with one device, whose network card is this inherited socket: its datagrams are frames (ci/emulate)")
    add("--netem", type=netem, metavar="'loss 1%'",
        help="what tc-netem(8) does to the packets that each interface sends")
    add("--mtu", type=whole_number(MTUS), default=defaults.mtu, metavar="N", help="of the interfaces; 9000 unless given")
    add("--accel", choices=["auto", "kvm", "tcg"], default=defaults.accel,
        help="auto (the default) takes KVM where a guest really comes up with it, else TCG, QEMU's emulation")
    add("--cpus", type=whole_number(CPUS), default=defaults.cpus, metavar="N",
        help="of each guest; 1 unless given, 2 where two programs poll without a pause")
    add("--memory", type=whole_number(MEBIBYTES), default=defaults.memory, metavar="MIB", help="of each guest; 2048 unless given")
    add("--timeout", type=whole_number(SECONDS), default=defaults.timeout, metavar="S",
        help="seconds after which all ends, with the guests' consoles shown; 300 unless given")
    add("--out", default=defaults.out, metavar="DIR", help="a folder, made if missing, that guests write to under the same path")
    add("--env", type=variable, action="append", default=[], metavar="NAME[=VALUE]",
        help="a variable for COMMAND's environment, by name alone as it is here; COMMAND inherits no other")
    add("--drive", type=existing_file, action="append", default=[], metavar="FILE",
        help="a disk image for the guest, /dev/vda and on; what the guest writes to it is forgotten")
    add("--prepare", action="store_true",
        help="only fetch the kernel and build what a run needs, if anything is missing, so that later runs need no network")
    return made


def parse(arguments):
    """Options from the words of the command line; exits with a usage message when they make none."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    command = tuple(arguments[split + 1:])
    made = parser()
    given = made.parse_args(arguments[:split])
    if given.prepare and command:
        made.error("--prepare runs no COMMAND")
    if not given.prepare and not command:
        made.error("COMMAND is missing; it follows --")
    if given.network and given.hosts != 1:
        made.error("--network is for one guest")
    return Options(
        command=command,
        device=given.device,
        hosts=given.hosts,
        netem=given.netem or "",
        mtu=given.mtu,
        accel=given.accel,
        cpus=given.cpus,
        memory=given.memory,
        timeout=given.timeout,
        out=os.path.abspath(given.out) if given.out else "",
        drives=tuple(given.drive),
        network=given.network,
        environment={**ENVIRONMENT, **dict(given.env)},
        directory=os.getcwd(),
        prepare=given.prepare,
    )
