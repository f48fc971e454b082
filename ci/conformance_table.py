"""docs/conformance.md: every promise of the conformance suite, and which backend keeps it, as a run of the suite found it.

  conformance_table.py write --events FILE   writes the table
  conformance_table.py check --events FILE   fails where the table that is checked in is not the run's

FILE is the build event file of a `bazel test` that ran the suite on all backends; nothing is built or run here. A promise is a
test; its sentence is the test's name. Its suite is introduced by the comment at the head of its file, or, for a further suite of
the same file, by the comment at its class. Of each promise the page names the backends that do not keep it. A backend that cannot
be had on this machine keeps the answers that the page has.
"""

import argparse
import collections
import pathlib
import re
import sys

import count_tests

SUITE = "//tests/verbs/conformance"
# A backend, the test target that runs the suite on it, and what it is. One target may do so in several profiles.
BACKENDS = [
    ("loopback", f"{SUITE}:loopback_test", "software NICs within one process, on threads of their own"),
    ("sim", f"{SUITE}:sim_test", "software NICs on simulated networks in virtual time: clean, busy, with loss, duplicates, disorder"),
    ("udp", f"{SUITE}:udp_test", "software NICs over UDP sockets, IPv4; also with all on one address, at UDP ports of their own"),
    ("udp6", f"{SUITE}:udp6_test", "the same, IPv6"),
    ("raw", f"{SUITE}:raw_test", "software NICs over raw sockets"),
    (
        "switched",
        f"{SUITE}:switched_test",
        "software NICs behind a simulated switch (`sim/fabric`): clean, on loops of their own, slow, lossy, with DCQCN",
    ),
    ("ns-3", f"{SUITE}:ns3_test", "the same on ns-3's scheduler and devices (`sim/ns3`)"),
    ("rxe", "//tests/verbs:rxe_conformance_test", "the kernel's Soft-RoCE, in the lab's guest: by rdma_cm, some also by an exchange over TCP"),
    ("siw", "//tests/verbs:siw_conformance_test", "the kernel's SoftiWARP, in the lab's guest: by rdma_cm"),
    ("tok verbs", "//tests/verbs:user_conformance_test", "rdma-core over the software NIC in the kernel's place: as rxe"),
]
TABLE = pathlib.Path("docs/conformance.md")
COMMAND = "ci/conformance_table"

KEPT = "kept"
COLUMNS = ["backend", "is", "keeps", "cases that passed", "lacks"]
CASES = COLUMNS.index("cases that passed")

# Names of tests have no apostrophes; here the first word wants one.
POSSESSIVES = [
    "actives reads",
    "atomics result",
    "atomics sink",
    "connections end",
    "devices limit",
    "ends error",
    "listeners port",
    "pairs error",
    "peers bytes",
    "peers memory",
    "peers reads",
    "regions own",
]

Suite = collections.namedtuple("Suite", "name text path")
# What the page says: {(suite's heading, sentence, backend): answer}, and how many cases passed, {backend: number}.
Page = collections.namedtuple("Page", "answers passed")


def sentence(name):
    """AWriteOneByteTooLongIsDenied -> A write one byte too long is denied"""
    words = re.findall(r"[A-Z](?=[A-Z][a-z])|[A-Z][a-z]+|[A-Z]+|[0-9]+|[a-z]+", name)
    text = " ".join(word.lower() for word in words)
    for phrase in POSSESSIVES:
        owner, owned = phrase.split()
        text = re.sub(rf"\b{phrase}\b", f"{owner[:-1]}'s {owned}", text)
    return text[:1].upper() + text[1:]


def comment_before(lines, index):
    """The // comment that ends on the line before lines[index], as one line of text."""
    start = index
    while start > 0 and lines[start - 1].startswith("//"):
        start -= 1
    return " ".join(line[2:].strip() for line in lines[start:index])


def suites_of(path, text):
    """The suites that a test file declares, with what introduces each."""
    lines = text.splitlines()
    first_code = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    suites = []
    for match in re.finditer(r"^TOKAMAK_CONFORMANCE\((\w+)\)", text, re.MULTILINE):
        index = first_code
        if suites:
            index = next(i for i, line in enumerate(lines) if re.match(rf"class {match.group(1)}\b", line))
        suites.append(Suite(match.group(1), comment_before(lines, index), path))
    return suites


def read_suites(root):
    suites = []
    for path in sorted((root / SUITE.lstrip("/")).glob("*_test.cc")):
        suites += suites_of(path.relative_to(root), path.read_text(encoding="utf-8"))
    return suites


def promises_of(cases):
    """{(suite, name): {profile: case}} from the cases of one backend, in their order."""
    promises = {}
    for case in cases:
        match = re.fullmatch(r"Conformance/(\w+)\.(\w+)/(\w+)", case["name"])
        if match:
            suite, name, profile = match.groups()
            promises.setdefault((suite, name), {})[profile] = case
    return promises


def lacking(reason):
    """What a skip says is missing, a capability's name; None when it names none."""
    match = re.search(r"\b[A-Z]\w*::(\w+)", reason)
    return match.group(1) if match else None


def answer(profiles):
    """What one backend makes of one promise, and what is wrong with that, if anything."""
    if not profiles:
        return "**not run**", "was not run"
    count = collections.Counter(case["status"] for case in profiles.values())
    if count[count_tests.FAILED]:
        return "**broken**", "is broken"
    skips = [case["reason"] for case in profiles.values() if case["status"] == count_tests.SKIPPED]
    unnamed = [reason for reason in skips if lacking(reason) is None]
    if unnamed:
        return "**skipped**", f"is skipped without naming a capability ({unnamed[0]})"
    if not skips:
        return KEPT, None
    lacks = "no " + ", ".join(f"`{name}`" for name in sorted({lacking(reason) for reason in skips}))
    kept = count[count_tests.PASSED]
    return (f"{KEPT} on {kept} of {len(profiles)}, else {lacks}" if kept else lacks), None


def unavailable(promises):
    """True for a backend that this machine does not have: all is skipped, and not for a capability."""
    cases = [case for profiles in promises.values() for case in profiles.values()]
    skipped = [c for c in cases if c["status"] == count_tests.SKIPPED and lacking(c["reason"]) is None]
    return bool(cases) and len(skipped) == len(cases)


def is_skipped(cases):
    """True where there are cases and none of them ran."""
    return bool(cases) and all(case["status"] == count_tests.SKIPPED for case in cases)


def exceptions(answers):
    """" (rxe, siw: no `datagrams`)" of {backend: answer}: those that do not keep a promise; "" where all do."""
    backends = {}
    for backend, text in answers.items():
        if text != KEPT:
            backends.setdefault(text, []).append(backend)
    return f" ({'; '.join(', '.join(names) + ': ' + text for text, names in backends.items())})" if backends else ""


def read_exceptions(text):
    """{backend: answer} of what exceptions wrote, without its parentheses."""
    return {backend: said for part in text.split("; ") if part
            for names, said in [part.split(": ", 1)] for backend in names.split(", ")}


def page_of(text):
    """The Page that render wrote."""
    answers, passed, heading, backends, whole = {}, {}, None, [], {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.strip("|").split(" | ")]
        promise = re.fullmatch(r"- ([^(]+?)(?: \((.*)\))?", line)
        if line.startswith("## "):
            heading, whole = line[3:], {}
        elif len(fields) == len(COLUMNS) and fields[CASES].isdigit():
            backends.append(fields[0])
            passed[fields[0]] = int(fields[CASES])
        elif line.startswith("The whole suite ("):
            whole = read_exceptions(line[len("The whole suite ("):-len("):")])
        elif promise and heading:
            own = read_exceptions(promise.group(2) or "")
            for backend in backends:
                answers[heading, promise.group(1), backend] = own.get(backend, whole.get(backend, KEPT))
    return Page(answers, passed)


def section(suite, heading, promises):
    """The lines of one suite. `promises`: {sentence: {backend: answer}}."""
    everywhere = list(promises.values())
    whole = {backend: text for backend, text in everywhere[0].items() if all(each[backend] == text for each in everywhere)}
    source = f"[{pathlib.Path(suite.path).name}](../{suite.path})"
    lines = ["", f"## {heading}", "", f"{suite.text} ({source})", ""]
    if exceptions(whole):
        lines += [f"The whole suite{exceptions(whole)}:", ""]
    return lines + [f"- {said}" + exceptions({backend: text for backend, text in each.items() if backend not in whole})
                    for said, each in promises.items()]


def overview(suites, backends, passed):
    """The lines of the table of backends. `suites`: {heading: {sentence: {backend: answer}}}; `passed`: as of a Page."""
    descriptions = {name: text for name, _, text in BACKENDS}
    promises = [answers for suite in suites.values() for answers in suite.values()]
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for backend in backends:
        said = [answers[backend] for answers in promises]
        lacks = collections.Counter(name for text in said for name in re.findall(r"`\w+`", text))
        row = [
            backend,
            descriptions[backend],
            f"{sum(text.startswith(KEPT) for text in said)} of {len(said)}",
            str(passed[backend]),
            ", ".join(f"{name} {number}" for name, number in lacks.most_common()) or "nothing",
        ]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def render(suites, backends, before="", absent=()):
    """The document, and the lines that say what is wrong. `backends`: [(name, promises)]; `before`: the last document; `absent`:
    backends whose test did not come to run the suite."""
    last = page_of(before)
    absent = {*absent, *(name for name, promises in backends if unavailable(promises))}
    known = {}
    for _, promises in backends:
        for promise in promises:
            known.setdefault(promise[0], {})[promise[1]] = True
    passed = {backend: sum(case["status"] == count_tests.PASSED for profiles in promises.values() for case in profiles.values())
              for backend, promises in backends}
    passed.update({backend: number for backend, number in last.passed.items() if backend in absent})
    troubles, sections, found = [], [], {}
    for suite in suites:
        names = known.pop(suite.name, {})
        if not names:
            troubles.append(f"{suite.name} has no test that ran")
            continue
        heading = sentence(re.sub("Test$", "", suite.name))
        found[heading] = {}
        for name in names:
            answers = {}
            for backend, promises in backends:
                text, trouble = answer(promises.get((suite.name, name), {}))
                if backend in absent and (heading, sentence(name), backend) in last.answers:
                    text, trouble = last.answers[heading, sentence(name), backend], None
                answers[backend] = text
                if trouble:
                    troubles.append(f"{suite.name}.{name} {trouble} on {backend}")
            found[heading][sentence(name)] = answers
        sections += section(suite, heading, found[heading])
    troubles += [f"{name} is no suite of {SUITE}" for name in known]
    lines = [
        "# What a device promises, and which keep it",
        "",
        "What programs may rely on with any RDMA device, and where they may not. A promise is a test of `tests/verbs/conformance`, its",
        "sentence the test's name. Behind it stands which backends do not keep it, and which capability of `verbs::Limits` (or of the",
        "test's backend) they say they lack; the table counts the promises for each lack.",
        "",
        *overview(found, [name for name, _ in backends], passed),
        "",
        "On RDMA hardware `tests/verbs:ibv_conformance_test` runs; its answers are not yet written down.",
        "",
        f"`{COMMAND}` wrote this page from a run; `ci/test` fails where it is not that of its own run.",
        *sections,
    ]
    return "\n".join(lines) + "\n", troubles


def absent_backends(cases, promises, partly):
    """Those that did not come to run the suite: without QEMU a test in the lab is one skipped case. `partly`: or their test was not
    among these. `cases`: by label; `promises`: by backend."""
    return [name for name, label, _ in BACKENDS
            if not promises.get(name) and (is_skipped(cases.get(label, [])) or (partly and label not in cases))]


def from_events(root, events, before, partly=False):
    """As render. `partly`: backends whose test was not among these are as before."""
    cases = count_tests.cases_by_label(events)
    backends = [(name, promises_of(cases.get(label, []))) for name, label, _ in BACKENDS]
    return render(read_suites(root), backends, before, absent_backends(cases, dict(backends), partly))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "check"])
    parser.add_argument("--events", required=True)
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    table = root / TABLE
    before = table.read_text(encoding="utf-8") if table.exists() else ""
    with open(args.events, encoding="utf-8", errors="replace") as events:
        text, troubles = from_events(root, events, before, partly=args.command == "check")
    for trouble in troubles:
        print(f"{COMMAND}: {trouble}", file=sys.stderr)
    if args.command == "write":
        table.write_text(text, encoding="utf-8")
    elif before != text:
        print(f"{TABLE} is not that of this run: run {COMMAND} and commit what it writes", file=sys.stderr)
        sys.exit(1)
    sys.exit(1 if troubles else 0)


if __name__ == "__main__":
    main()
