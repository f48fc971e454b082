"""Counts test cases over any number of test runs and judges the skipped ones.

  count_tests.py collect CASES --events FILE --exit-code N [--under CONFIG]   one `bazel test`, by its build event file
  count_tests.py add CASES passed|failed|skipped|"left out" NAME [REASON]     one check that Bazel did not run
  count_tests.py report CASES --allowed-skips FILE                            prints what is wrong, and last the totals

CASES holds one JSON object a line: status, name, reason. What a case is, its test.xml says; a target that timed out, did not
build or failed outside of its cases counts as one failed case. What a run had no time for is `left out`: named, not counted.
"""

import argparse
import fnmatch
import json
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

PASSED, FAILED, SKIPPED, LEFT_OUT = "passed", "failed", "skipped", "left out"


def case(status, name, reason=""):
    return {"status": status, "name": name, "reason": " ".join(reason.split())}


def parse_test_xml(text, label):
    """The cases of one test.xml as written by GoogleTest, or by Bazel for a test that writes none."""
    # A test's output, which Bazel quotes, may hold bytes that XML forbids.
    text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", text)
    root = ElementTree.fromstring(text)
    # Bazel's own test.xml quotes the output: GoogleTest began and was not there to write the file.
    ended_early = any("[==========] Running " in (e.text or "") for e in root.iter("system-out"))
    cases = []
    for element in root.iter("testcase"):
        suite = element.get("classname")
        name = f"{suite}.{element.get('name')}" if suite else label
        trouble = next((e for e in element if e.tag in ("failure", "error")), None)
        skip = element.find("skipped")
        if trouble is not None:
            cases.append(case(FAILED, name, (trouble.get("message") or trouble.text or "")[:200]))
        elif ended_early and not suite:
            cases.append(case(FAILED, name, "the program ended before GoogleTest did"))
        elif skip is not None:
            cases.append(case(SKIPPED, name, skip.get("message") or skip.text or "no reason given"))
        elif element.get("status") == "notrun":
            cases.append(case(SKIPPED, name, "disabled"))
        else:
            cases.append(case(PASSED, name))
    return cases


def read_uri(uri):
    with open(urllib.parse.unquote(urllib.parse.urlparse(uri).path), encoding="utf-8", errors="replace") as file:
        return file.read()


def cases_of_attempt(label, result, read=read_uri):
    """The cases of one run of one test target, from its testResult event."""
    status = result.get("status", "NO_STATUS")
    uri = next((o["uri"] for o in result.get("testActionOutput", []) if o["name"] == "test.xml"), None)
    cases = []
    trouble = "wrote no test.xml"
    if uri is not None:
        try:
            cases = parse_test_xml(read(uri), label)
            trouble = "has no case in its test.xml"
        except (OSError, ElementTree.ParseError) as error:
            trouble = f"has an unreadable test.xml: {error}"
    if status not in ("PASSED", "FLAKY"):
        if status == "TIMEOUT" or not any(c["status"] == FAILED for c in cases):
            # Bazel's own test.xml for a target that wrote none shows one case that is the target itself.
            cases = [c for c in cases if c["name"] != label]
            cases.append(case(FAILED, label, "timed out" if status == "TIMEOUT" else f"ended as {status}"))
    elif not cases:
        cases.append(case(FAILED, label, trouble))
    return cases


def label_of_trouble(event):
    """The label of a target that did not build, or None; build events say it in several ways."""
    identity = event["id"]
    if "aborted" in event:
        if event["aborted"].get("reason") in ("SKIPPED", "NO_BUILD", "NO_ANALYZE"):
            return None
        for kind in ("targetCompleted", "targetConfigured", "configuredLabel", "unconfiguredLabel"):
            if kind in identity:
                return identity[kind]["label"]
        if "pattern" in identity:
            return " ".join(identity["pattern"]["pattern"])
    elif "targetCompleted" in identity and not event.get("completed", {}).get("success"):
        return identity["targetCompleted"]["label"]
    return None


def attempts_and_troubles(events):
    """The last attempt of each test, {(label, run, shard): result}, and the labels that did not build, in order."""
    attempts = {}  # with the number of the attempt
    troubled = {}
    for line in events:
        event = json.loads(line)
        trouble = label_of_trouble(event)
        if trouble is not None:
            troubled[trouble] = True
        if "testResult" in event["id"] and "testResult" in event:
            identity = event["id"]["testResult"]
            key = (identity["label"], identity.get("run", 1), identity.get("shard", 1))
            attempt = identity.get("attempt", 1)
            if key not in attempts or attempt >= attempts[key][0]:
                attempts[key] = (attempt, event["testResult"])
    return {key: result for key, (_, result) in attempts.items()}, list(troubled)


def cases_by_label(events, read=read_uri):
    """The cases of each test target that ran in one `bazel test`, from the lines of its build event file."""
    cases = {}
    for (label, _, _), result in attempts_and_troubles(events)[0].items():
        cases.setdefault(label, []).extend(cases_of_attempt(label, result, read))
    return cases


def collect(events, exit_code, read=read_uri):
    """All cases of one `bazel test`, from the lines of its build event file."""
    attempts, troubled = attempts_and_troubles(events)
    cases = []
    tested = set()
    for (label, _, _), result in attempts.items():
        tested.add(label)
        cases.extend(cases_of_attempt(label, result, read))
    cases.extend(case(FAILED, label, "did not build") for label in troubled if label not in tested)
    if exit_code != 0 and not any(c["status"] == FAILED for c in cases):
        why = "found no tests" if exit_code == 4 else f"exited with {exit_code}"
        cases.append(case(FAILED, "bazel test", why))
    return cases


def parse_allowed_skips(text):
    """Patterns from lines `pattern reason`; raises ValueError for a line without a reason."""
    patterns = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        pattern, _, reason = line.partition(" ")
        if not reason.strip():
            raise ValueError(f"line {number}: {pattern} has no reason")
        patterns.append(pattern)
    return patterns


def report(cases, patterns):
    """The lines to print, the totals last, and whether all is well."""
    lines = []
    count = {status: sum(c["status"] == status for c in cases) for status in (PASSED, FAILED, SKIPPED)}
    lines += [f"FAILED {c['name']}: {c['reason']}" for c in cases if c["status"] == FAILED]
    unlisted = [
        c for c in cases if c["status"] == SKIPPED and not any(fnmatch.fnmatchcase(c["name"], p) for p in patterns)
    ]
    lines += [f"SKIPPED but not in tests/allowed_skips.txt: {c['name']}: {c['reason']}" for c in unlisted]
    left_out = [c for c in cases if c["status"] == LEFT_OUT]
    if left_out:
        lines.append(f"{len(left_out)} left out: " + "; ".join(f"{c['name']} ({c['reason']})" for c in left_out))
    if not cases:
        lines.append("FAILED: no test ran")
    lines.append(f"{count[PASSED]} passed, {count[FAILED]} failed, {count[SKIPPED]} skipped")
    return lines, bool(cases) and count[FAILED] == 0 and not unlisted


def append(path, cases, under):
    with open(path, "a", encoding="utf-8") as file:
        for c in cases:
            name = f"{c['name']} under {under}" if under and c["status"] == FAILED else c["name"]
            file.write(json.dumps({**c, "name": name}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("collect", "add", "report"):
        commands.add_parser(name).add_argument("cases")
    commands.choices["collect"].add_argument("--events", required=True)
    commands.choices["collect"].add_argument("--exit-code", type=int, required=True)
    commands.choices["collect"].add_argument("--under", default="")
    commands.choices["add"].add_argument("status", choices=[PASSED, FAILED, SKIPPED, LEFT_OUT])
    commands.choices["add"].add_argument("name")
    commands.choices["add"].add_argument("reason", nargs="?", default="")
    commands.choices["report"].add_argument("--allowed-skips", required=True)
    args = parser.parse_args()

    if args.command == "collect":
        with open(args.events, encoding="utf-8", errors="replace") as events:
            append(args.cases, collect(events, args.exit_code), args.under)
    elif args.command == "add":
        append(args.cases, [case(args.status, args.name, args.reason)], "")
    else:
        with open(args.cases, encoding="utf-8") as file:
            cases = [json.loads(line) for line in file]
        with open(args.allowed_skips, encoding="utf-8") as file:
            try:
                patterns, well = parse_allowed_skips(file.read()), True
            except ValueError as error:
                patterns, well = [], False
                print(f"{args.allowed_skips}, {error}")
        lines, good = report(cases, patterns)
        print("\n".join(lines))
        sys.exit(0 if good and well else 1)


if __name__ == "__main__":
    main()
