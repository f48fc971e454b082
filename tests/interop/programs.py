"""Unmodified programs on both sides of the cable: one over rdma_rxe, the other below `tok verbs`, and the other way round."""

import dataclasses

import two_worlds
from two_worlds import NAMESPACE, RXE_ADDRESS, RXE_DEVICE, SOFT_ADDRESS, Failed, Program

ROUNDS = 200
SECONDS = 60  # that a program may take
DATA_PORT = 18515  # where perftest and the pingpongs exchange their numbers, by TCP
RPING_PORT = 7174
UCMATOSE_PORT = 7471
UDADDY_PORT = 7174


@dataclasses.dataclass(frozen=True)
class Side:
    """Where a program runs: what comes before its words, and what the words of braces stand for."""
    name: str
    address: str
    namespace: str | None
    before: tuple[str, ...]
    device: str
    gid: int


@dataclasses.dataclass(frozen=True)
class Pair:
    """A server, and a client with {server} for its address. {device}, {gid} and {own} are those of the side that each runs on."""
    name: str
    server: str
    client: str
    port: int
    by_cm: bool = False  # the server listens by rdma_cm rather than by TCP
    tries: int = 1


def perftest(name, options=""):
    words = f"{name} -F -n {ROUNDS} -d {{device}} -x {{gid}} {options}"
    return Pair(f"{name} {options}".strip(), words, f"{words} {{server}}", DATA_PORT)


def perftest_by_cm(name):
    """With -R perftest 4.5 connects twice; a client that is faster than its server listens again is refused, as it should be."""
    words = f"{name} -F -n {ROUNDS} -R"
    return Pair(f"{name} -R", words, f"{words} {{server}}", DATA_PORT, by_cm=True, tries=4)


def pingpong(name, options):
    words = f"{name} {options} -n {ROUNDS} -d {{device}} -g {{gid}}"
    return Pair(f"{name} {options}", words, f"{words} {{server}}", DATA_PORT)


PAIRS = [
    *[perftest(f"ib_{what}_{how}") for what in ("send", "write", "read", "atomic") for how in ("lat", "bw")],
    perftest_by_cm("ib_send_lat"),
    perftest_by_cm("ib_write_bw"),
    perftest("ib_send_lat", "-e"),
    perftest("ib_send_bw", "--use-srq -r 64"),
    perftest("ib_send_lat", "-c UD"),
    perftest("ib_atomic_bw", "-A CMP_AND_SWAP"),
    perftest("ib_write_bw", "-b -q 4 -s 4097"),
    pingpong("ibv_rc_pingpong", "-c"),
    pingpong("ibv_srq_pingpong", "-c"),
    pingpong("ibv_ud_pingpong", "-c"),
    Pair("rping", "rping -s -a {own} -C 10 -V -S 4097", "rping -c -a {server} -C 10 -V -S 4097", RPING_PORT, by_cm=True),
    Pair("ucmatose", "ucmatose -b {own}", "ucmatose -s {server}", UCMATOSE_PORT, by_cm=True),
    Pair("udaddy", "udaddy -b {own}", "udaddy -s {server}", UDADDY_PORT, by_cm=True),
]


def start(side, words, server):
    words = words.format(device=side.device, gid=side.gid, own=side.address, server=server.address)
    return Program([*side.before, *words.split()], side.namespace)


def await_server(program, pair, side):
    if not pair.by_cm:
        two_worlds.await_true(f"{pair.name}'s door", lambda: program.ended() or
                              two_worlds.do("ss", "-Hltn", f"sport = :{pair.port}", namespace=side.namespace))
    elif side.namespace:
        program.await_text("rdma_cm: listen(", SECONDS)  # as --explain tells
    else:
        two_worlds.await_listener(pair.port)


def run(pair, server_side, client_side):
    """Both must end with exit code 0, and compare what they receive where they can. Returns what the client said last of figures."""
    for left in reversed(range(pair.tries)):
        try:
            return run_once(pair, server_side, client_side)
        except Failed:
            if left == 0:
                raise


def run_once(pair, server_side, client_side):
    with start(server_side, pair.server, server_side) as server:
        await_server(server, pair, server_side)
        with start(client_side, pair.client, server_side) as client:
            ends = {f"client over {client_side.name}": client, f"server over {server_side.name}": server}
            troubles = [trouble for name, program in ends.items() if (trouble := trouble_of(name, program))]
            if troubles:
                raise Failed("; ".join(troubles))
            figures = [" ".join(line.split()) for line in client.text.splitlines()
                       if not line.startswith("tokamak-verbs") and any(map(str.isdigit, line))]
            return figures[-1] if figures else "exit code 0 on both sides"


def trouble_of(name, program):
    try:
        code = program.await_end(SECONDS)
    except Failed as error:
        return f"{name}: {error}"
    if code != 0:
        return f"{name}: exit code {code}: {' / '.join(program.text.strip().splitlines()[-8:])}"
    return f"{name}: other bytes" if "mismatch" in program.text else ""


def cases(programs, pcap):
    """Pairs of name and function, on a network that loses nothing: datagrams are not repeated, nor is a program's last word."""
    rxe = Side("rxe", RXE_ADDRESS, None, (), RXE_DEVICE, two_worlds.gid_index())
    tok = (f"{programs}/lib/cli/tok", "verbs", "--library", f"{programs}/lib/verbs/kernel/preload/libtokamak-verbs.so",
           "--address", SOFT_ADDRESS, "--pcap", pcap)
    for pair in PAIRS:
        explain = ("--explain",) if pair.by_cm else ()  # a line for each request; only await_server needs one
        soft = Side("tok verbs", SOFT_ADDRESS, NAMESPACE, (*tok, *explain, "--"), "rxe_tok0", 0)
        for server, client in ((rxe, soft), (soft, rxe)):
            yield (f"{pair.name}: client over {client.name}, server over {server.name}",
                   lambda pair=pair, server=server, client=client: run(pair, server, client))
