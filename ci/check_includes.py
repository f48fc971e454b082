"""Logic has no system calls, threads, locks, clocks or random numbers of its own, lib and sim lock with lib/base/mutex.h alone, only
sim/ns3 knows ns-3, programs know of the client what its users do, and public headers stand by themselves: checks what files include.

  check_includes.py FILE...        prints each wrong include; names of files are relative to the root of the tree

Logic is handed an EventLoop, a Device and a Random instead (docs of lib/base). What may do without is listed here by name.
"""

import re
import sys

# Parts of lib/ that are not logic, by the beginning of their paths: they talk to the system.
SYSTEM = (
    "lib/cli/",
    "lib/client/",
    "lib/daemon/",
    "lib/directory/redis",
    "lib/os/",
    "lib/verbs/ibv/",
    "lib/verbs/open/",
    "lib/verbs/soft/shared",
    "lib/verbs/soft/shm",
    "lib/verbs/soft/udp",
    "lib/verbs/kernel/",
)

# Our locks, which clang can check (ci/thread_safety), and what they are made of.
MUTEX = "lib/base/mutex.h"
LOCKS = {"condition_variable", "mutex", "shared_mutex"}

# Headers that wait, read a clock, draw, start something or touch files.
FORBIDDEN = {"chrono", "csignal", "ctime", "filesystem", "fstream", "future", "random", "thread", MUTEX} | LOCKS
FORBIDDEN_FOLDERS = ("absl/debugging/", "absl/random/", "absl/synchronization/", "absl/time/")

# Every other header with a folder or of C is the system's or a library's: these are harmless.
HARMLESS = ("absl/", "isa-l/", "lib/", "tokamak/object_id.h", "xxhash.h")

# Who may have one anyway, and why.
EXCEPTIONS = {
    # A device may hear of its events on a thread of its own, and each watch is on a loop of its own.
    "lib/verbs/device_watches.": {MUTEX},
    # Engines on several threads say their phases to one log, and share what one device has registered.
    "lib/base/phase_log.": {MUTEX},
    "lib/transport/memory/registration_cache.": {MUTEX},
    # Work requests may be posted from any thread, as with hardware: one lock at the software NIC's door.
    "lib/verbs/soft/": {MUTEX},
    # The locks themselves.
    MUTEX: LOCKS | {"chrono"},
    # Ciphers and hashes of libcrypto that compute and nothing else: neither its random numbers nor its sockets.
    "lib/security/": {"openssl/crypto.h", "openssl/err.h", "openssl/evp.h", "openssl/hmac.h"},
    # An instruction, not a system call: what the CRC's library leaves undone.
    "lib/verbs/soft/packets/icrc.cc": {"immintrin.h"},
}

# Parts of lib and sim that include the standard library's locks, and why.
OWN_LOCKS = {
    MUTEX: "they are made of these",
    "lib/verbs/kernel/program/program_pages.cc": "std::call_once",
}

# Who may include ns-3 and our adapter to it, whose licence is another: GPL-2.0-only.
NS3 = ("sim/ns3/", "tests/sim/ns3/", "tests/verbs/conformance/backends/ns3_backend.cc")
NS3_HEADERS = ("ns3/", "sim/ns3/")

# Who may include what is behind the public headers of the client (include/tokamak), tests of others among them where they play a
# client or a daemon themselves.
CLIENT = ("lib/client/", "lib/daemon/", "tests/ci/", "tests/cli/", "tests/client/", "tests/daemon/", "tests/fuzz/", "tests/verbs/conformance/")

# What programs include; nothing but each other and the standard library may be in them.
PUBLIC = "include/tokamak/"

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)


def is_logic(path):
    return path.startswith("lib/") and path.endswith((".h", ".cc")) and not path.startswith(SYSTEM)


def wrong_includes(path, text):
    """The headers that the logic file `path` must not include."""
    excepted = set().union(*(headers for start, headers in EXCEPTIONS.items() if path.startswith(start)))
    wrong = []
    for header in INCLUDE.findall(text):
        foreign = ("/" in header or header.endswith(".h")) and not header.startswith(HARMLESS)
        if (header in FORBIDDEN or header.startswith(FORBIDDEN_FOLDERS) or foreign) and header not in excepted:
            wrong.append(header)
    return wrong


def lock_includes(path, text):
    """The standard library's locks that the file `path` of lib or sim must not include."""
    if not path.startswith(("lib/", "sim/")) or path in OWN_LOCKS:
        return []
    return [header for header in INCLUDE.findall(text) if header in LOCKS]


def ns3_includes(path, text):
    """The headers of ns-3 and of sim/ns3 that the file `path` must not include."""
    if path.startswith(NS3):
        return []
    return [header for header in INCLUDE.findall(text) if header.startswith(NS3_HEADERS)]


def client_includes(path, text):
    """The headers of lib/client that the file `path` must not include."""
    if path.startswith(CLIENT):
        return []
    return [header for header in INCLUDE.findall(text) if header.startswith("lib/client/")]


def public_includes(path, text):
    """The headers that the public header `path` must not include."""
    if not path.startswith(PUBLIC):
        return []
    standard = ("stddef.h", "stdint.h")
    own = [header for header in INCLUDE.findall(text) if not header.startswith("tokamak/")]
    return [header for header in own if "/" in header or (header.endswith(".h") and header not in standard)]


def main():
    well = True
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for header in wrong_includes(path, text) if is_logic(path) else []:
            well = False
            print(f"{path} is logic and must not include {header} (see ci/check_includes.py)", file=sys.stderr)
        for header in lock_includes(path, text) if not is_logic(path) else []:
            well = False
            print(f"{path} must include {MUTEX} in place of {header} (see ci/check_includes.py)", file=sys.stderr)
        for header in ns3_includes(path, text):
            well = False
            print(f"{path} is under MIT and must not include {header} (see ci/check_includes.py)", file=sys.stderr)
        for header in client_includes(path, text):
            well = False
            print(f"{path} is a program and must not include {header}, but tokamak/*.h (see ci/check_includes.py)", file=sys.stderr)
        for header in public_includes(path, text):
            well = False
            print(f"{path} is a public header and must not include {header} (see ci/check_includes.py)", file=sys.stderr)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
