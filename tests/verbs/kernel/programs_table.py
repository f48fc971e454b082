"""RDMA programs of others over the software NIC, as a table: ci/verbs_programs.

A pair of programs runs below `tok verbs` at two addresses of a network namespace that this makes itself. What is expected of
each row is written here, so that a program that stops running is as much of an error as one that begins to.
"""

import argparse
import contextlib
import dataclasses
import gzip
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

SERVER, CLIENT = "10.77.0.1", "10.77.0.2"
NETWORK = """ip link set lo up
ip link add tok0 type veth peer name tok1
ip address add 10.77.0.1/24 dev tok0
ip address add 10.77.0.2/24 dev tok1
ip link set tok0 up
ip link set tok1 up
"""
LONGEST = 15  # seconds that a program may take
ANSWERED = 5  # seconds until a server answers

UCX = {"UCX_NET_DEVICES": "rxe_tok0:1", "UCX_TLS": "rc_verbs,ud_verbs"}
FIO = "fio --name={side} --ioengine=rdma {place} --port=18555 --size=8m --bs=64k {more}"


@dataclasses.dataclass
class Row:
    """Two programs, `server` first, `{host}` in `client` being its address; or one, where `client` is empty."""
    name: str
    server: str
    client: str = ""
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    stays: bool = False  # the server serves on, and is ended
    tries: int = 1


def pingpong(name: str, options: str = "-c") -> Row:
    return Row(f"{name} {options}", f"{name} -g 0 -n 200 {options}", f"{name} -g 0 -n 200 {options} {{host}}")


def perftest(name: str, options: str = "") -> Row:
    # With -R perftest 4.5 connects twice. Where its client is faster than its server listens again it is refused, as it
    # should be, and crashes; the server has had its first connection then, and both have to begin again.
    tries = 10 if options == "-R" else 1
    return Row(f"{name} {options}".strip(), f"{name} -n 200 {options}", f"{name} -n 200 {options} {{host}}", tries=tries)


# With -P 0 it uses no MPI, with which Debian 13 builds it.
def ucx(options: str, name: str) -> Row:
    return Row(name, f"ucx_perftest -P 0 {options} -n 500", f"ucx_perftest {{host}} -P 0 {options} -n 500", UCX)


def fio(verb: str) -> Row:
    # fio's sender does not wait for a receiver that is not ready: there is a receive for each of the 128 messages.
    more = "--rw=read --iodepth=128" if verb == "send" else "--rw=read"
    return Row(f"fio --verb={verb}", FIO.format(side="server", place="", more=more),
               FIO.format(side="client", place="--hostname={host}", more=f"--verb={verb} --rw=write --iodepth=4"))


PERFTEST = [f"ib_{what}_{how}" for what in ("send", "write", "read", "atomic") for how in ("lat", "bw")]

ROWS = [
    Row("ibv_devinfo -v", "ibv_devinfo -v"),
    pingpong("ibv_rc_pingpong"),
    pingpong("ibv_rc_pingpong", "-c -e"),
    pingpong("ibv_rc_pingpong", "-c -N"),
    pingpong("ibv_srq_pingpong"),
    pingpong("ibv_srq_pingpong", "-c -e"),
    pingpong("ibv_ud_pingpong"),
    pingpong("ibv_ud_pingpong", "-c -e"),
    Row("rping", f"rping -s -a {SERVER} -C 10 -v", "rping -c -a {host} -C 10 -v"),
    Row("ucmatose", f"ucmatose -b {SERVER}", "ucmatose -s {host}"),
    Row("rdma_server, rdma_client", "rdma_server", "rdma_client -s {host}"),
    Row("udaddy", f"udaddy -b {SERVER}", "udaddy -s {host}"),
    Row("rstream", f"rstream -b {SERVER} -S 4096", "rstream -s {host} -S 4096"),
    *[perftest(name) for name in PERFTEST],
    *[perftest(name, "-R") for name in PERFTEST],
    *[perftest(name, "-e") for name in PERFTEST if name not in ("ib_write_lat", "ib_write_bw")],
    perftest("ib_send_lat", "--use-srq -r 64"),
    perftest("ib_send_bw", "--use-srq -r 64"),
    perftest("ib_send_lat", "-c UD"),
    perftest("ib_send_bw", "-c UD"),
    perftest("ib_write_bw", "-b -q 8"),
    *[Row(f"qperf {test}", "qperf", f"qperf -t 1 -cm1 {{host}} {test}", stays=True)
      for test in ("rc_lat", "rc_bw", "rc_rdma_write_lat", "rc_rdma_read_bw", "rc_compare_swap_mr")],
    fio("write"),
    fio("read"),
    fio("send"),
    *[ucx(f"-d rxe_tok0:1 -x {transport} -t {test}", f"ucx_perftest -x {transport} -t {test}")
      for transport, tests in (("rc_verbs", ("am_lat", "put_bw", "add_lat")), ("ud_verbs", ("am_lat", "am_bw")))
      for test in tests],
    *[ucx(f"-t {test} -s 4096", f"ucx_perftest -t {test}") for test in ("tag_lat", "tag_bw", "ucp_put_lat", "ucp_get")],
    *[Row(f"fi_pingpong -p {provider} -e {endpoint}", f"fi_pingpong -p {provider} -e {endpoint} -c",
          f"fi_pingpong -p {provider} -e {endpoint} -c {{host}}")
      for provider, endpoint in (("verbs", "dgram"), ("verbs", "msg"), ("verbs;ofi_rxm", "rdm"))],
]

# Modules of rdma-core's tests that are of no vendor, and how many of each pass; what does not, and why, is in
# docs/verbs-for-everyone.md. The tests of Debian 12's rdma-core 44 have one of devices less than later ones.
DEVICE_TESTS = 12 if platform.freedesktop_os_release()["VERSION_ID"] == "12" else 13
PYVERBS = {
    "addr": 3, "atomic": 7, "cq": 4, "cq_events": 2, "cqex": 4, "device": DEVICE_TESTS, "flow": 0, "fork": 1, "mr": 8, "odp": 0,
    "parent_domain": 0, "pd": 4, "qp": 16, "qpex": 17, "rdmacm": 10, "relaxed_ordering": 2, "rss_traffic": 0,
    "shared_pd": 0, "tag_matching": 0,
}
PYVERBS_TESTS = pathlib.Path("/usr/share/doc/rdma-core/tests")


class Programs:
    """Starts programs below tok verbs; what they say goes to files of a folder."""

    def __init__(self, tok: str, library: str, folder: str) -> None:
        self._tok = tok
        self._library = library
        self.folder = pathlib.Path(folder)

    def start(self, address: str, command: str, side: str, environment: dict[str, str],
              flags: list[str] | None = None) -> subprocess.Popen:
        words = [self._tok, "verbs", "--library", self._library, "--address", address, *(flags or []), "--", *command.split()]
        with open(self.folder / side, "wb") as output:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                    cwd=self.folder, env=os.environ | environment, start_new_session=True)

    def said(self, side: str) -> str:
        return (self.folder / side).read_text(errors="replace")


def end(process: subprocess.Popen) -> None:
    """With all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def code_of(process: subprocess.Popen, seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def has_server() -> bool:
    """Whether anything in this network waits for packets: a NIC, or a program that listens at a TCP port."""
    tables = {name: pathlib.Path("/proc/net", name).read_text().splitlines()[1:] for name in ("udp", "tcp", "tcp6")}
    return bool(tables["udp"]) or any(" 0A " in line for name in ("tcp", "tcp6") for line in tables[name])


def run_pair(programs: Programs, row: Row) -> str:
    """What went wrong, or nothing."""
    server = programs.start(SERVER, row.server, "server", row.environment)
    try:
        if not row.client:
            code = code_of(server, LONGEST)
            return "" if code == 0 else f"exit code {code}"
        last = time.monotonic() + ANSWERED
        while not has_server() and server.poll() is None and time.monotonic() < last:
            time.sleep(0.02)
        while True:  # it may not be ready yet
            client = programs.start(CLIENT, row.client.format(host=SERVER), "client", row.environment)
            try:
                code = code_of(client, LONGEST)
            finally:
                end(client)
            if code == 0 or code is None or code < 0 or time.monotonic() > last or server.poll() is not None:
                break
            time.sleep(0.1)
        if code != 0:
            return "the client does not end" if code is None else f"exit code {code} of the client"
        if row.stays:
            return ""
        code = code_of(server, LONGEST)
        return "" if code == 0 else "the server does not end" if code is None else f"exit code {code} of the server"
    finally:
        end(server)


def run_rows(programs: Programs, names: list[str]) -> int:
    wrong = 0
    for row in ROWS:
        if names and not any(row.name.startswith(name) for name in names):
            continue
        if shutil.which(row.server.split()[0]) is None:
            print(f"{row.name:<44} is not installed: see ci/setup", flush=True)
            wrong += 1
            continue
        began = time.monotonic()
        trouble, tries = "", 0
        while tries < row.tries and (tries == 0 or trouble):
            trouble, tries = run_pair(programs, row), tries + 1
        print(f"{row.name:<44} {trouble or ('ok' if tries == 1 else f'ok in try {tries}'):<32} {time.monotonic() - began:5.1f} s", flush=True)
        if trouble:
            wrong += 1
            for side in ("server", "client"):
                if (programs.folder / side).exists():
                    print(f"  {side}: " + programs.said(side).strip().replace("\n", "\n    ")[-1500:])
    return wrong


def run_pyverbs(programs: Programs, explain: bool) -> int:
    tests = programs.folder / "tests"
    tests.mkdir()
    for file in PYVERBS_TESTS.iterdir():
        if file.suffix == ".gz":
            (tests / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        else:
            shutil.copy(file, tests)
    # Newer ones ask iproute2's rdma for a device's interface, which asks the kernel. Where it knows of none they look where the others do.
    rdma = programs.folder / "bin" / "rdma"
    rdma.parent.mkdir()
    rdma.write_text("#!/bin/sh\necho '[]'\n")
    rdma.chmod(0o755)
    environment = {"PATH": f"{rdma.parent}:{os.environ['PATH']}"}
    wrong, passed_of_all = 0, 0
    for module, expected in PYVERBS.items():
        program = programs.start(SERVER, f"/usr/bin/python3 tests/run_tests.py -v tests.test_{module}", "pyverbs", environment)
        ended = code_of(program, LONGEST)
        end(program)
        said = programs.said("pyverbs")
        ran = re.search(r"^Ran (\d+) test", said, re.MULTILINE)
        counts = {what: int(count) for what, count in re.findall(r"(failures|errors|skipped)=(\d+)", said)}
        failed = counts.get("failures", 0) + counts.get("errors", 0)
        passed = int(ran[1]) - failed - counts.get("skipped", 0) if ran and ended is not None else 0
        passed_of_all += passed
        line = f"{passed} pass, {failed} fail, {counts.get('skipped', 0)} skipped"
        if ended is None:
            line = "does not end"
        if ended is None or passed != expected:
            wrong += 1
            line += f"; {expected} were to pass"
        print(f"{'pyverbs test_' + module:<44} {line}", flush=True)
        if explain:
            for test in re.findall(r"^(?:ERROR|FAIL): (\S+)", said, re.MULTILINE):
                print(f"  {test} fails")
            for reason in sorted(set(re.findall(r"skipped ['\"](.*)['\"]$", said, re.MULTILINE))):
                print(f"  skipped: {reason}")
    print(f"{'pyverbs':<44} {passed_of_all} pass", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tok", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--explain", action="store_true", help="why tests of pyverbs fail or are skipped")
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args()
    if os.environ.get("TOKAMAK_OWN_NETWORK") != "1":
        os.environ["TOKAMAK_OWN_NETWORK"] = "1"
        again = [sys.executable, os.path.abspath(__file__), *sys.argv[1:]]
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--net", *again])
    subprocess.run(["sh", "-ec", NETWORK], check=True)
    tok, library = os.path.abspath(flags.tok), os.path.abspath(flags.library)
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(tok, library, folder)
        wrong = run_rows(programs, flags.names)
        if not flags.names or any("pyverbs".startswith(name) for name in flags.names):
            wrong += run_pyverbs(programs, flags.explain)
    print("all as expected" if wrong == 0 else f"{wrong} not as expected")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
