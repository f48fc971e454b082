"""Proves that a wrong arrow between layers is a build error, and that the right ones are not.

  check_visibility.py [--cases FILE]

Copies the BUILD files into a scratch workspace, adds to every package a probe for each library of every other package, and lets
Bazel analyse them all: exactly the probes that the law forbids must be refused as not visible. The law stands here once more
because lib/BUILD is what is checked. With --cases each pair of packages counts as one test case (see count_tests.py).
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import count_tests

# What each layer may depend on; a package belongs to the layer with the longest name that it begins with.
LAW = {
    # What programs outside of the tree include and link. Everybody may; what is behind it stands below.
    "include/tokamak": ["lib/client"],
    "lib/base": [],
    "lib/os": ["lib/base"],
    "lib/verbs": ["lib/base"],
    "lib/verbs/ibv": ["lib/base", "lib/os", "lib/verbs"],
    "lib/verbs/soft": ["lib/base", "lib/verbs"],
    "lib/verbs/soft/udp": ["lib/base", "lib/os", "lib/verbs", "lib/verbs/soft"],
    "lib/verbs/soft/shm": ["lib/base", "lib/os", "lib/verbs", "lib/verbs/soft"],
    "lib/verbs/soft/shared": ["lib/base", "lib/os", "lib/verbs", "lib/verbs/soft", "lib/verbs/soft/shm", "lib/verbs/soft/udp"],
    "lib/verbs/open": ["lib/base", "lib/os", "lib/verbs", "lib/verbs/ibv", "lib/verbs/soft", "lib/verbs/soft/udp"],
    "lib/verbs/kernel": [
        "lib/base",
        "lib/os",
        "lib/verbs",
        "lib/verbs/soft",
        "lib/verbs/soft/shared",
        "lib/verbs/soft/shm",
        "lib/verbs/soft/udp",
    ],
    "lib/security": ["lib/base"],
    "lib/transport": ["lib/base", "lib/security", "lib/verbs"],
    "lib/store": ["lib/base"],
    "lib/directory": ["lib/base"],
    "lib/directory/redis": ["lib/base", "lib/directory", "lib/os"],
    "lib/directory/remote": ["lib/base", "lib/directory", "lib/transport", "lib/verbs"],
    "lib/node": ["lib/base", "lib/directory", "lib/store", "lib/transport", "lib/verbs"],
    "lib/client": ["lib/base", "lib/os"],
}
# Who wires implementations together; programs among them have of the client what include/tokamak has.
IMPLEMENTATIONS = [layer for layer in LAW if layer != "lib/client"]
LAW["lib/node/directories"] = list(IMPLEMENTATIONS)
IMPLEMENTATIONS.append("lib/node/directories")
LAW["lib/daemon"] = IMPLEMENTATIONS + ["lib/client"]
LAW["lib/cli"] = IMPLEMENTATIONS + ["lib/daemon"]
LAW["sim"] = IMPLEMENTATIONS
LAW["sim/ns3"] = IMPLEMENTATIONS + ["sim"]
# Users' programs.
LAW["examples"] = ["lib/base"]
LAW["examples/checkpoint"] = LAW["examples/kv_cache"] = ["examples", "lib/base"]
LAW["examples/patterns"] = ["examples", "lib/base", "lib/os", "lib/verbs", "lib/verbs/open"]  # of verbs, without a store
LAW["tests"] = None  # Tests may see everything, and nothing else may see them.
PUBLIC = "include/tokamak"

NOT_VISIBLE = re.compile(r"target '([^']+)' is not visible from target '([^']+)'")


def layer_of(package):
    owners = [layer for layer in LAW if package == layer or package.startswith(layer + "/")]
    return max(owners, key=len) if owners else None


def allowed(source, target):
    """Whether the law lets a package of layer `source` depend on one of layer `target`."""
    return source == target or target == PUBLIC or LAW[source] is None or target in LAW[source]


def run(command, **options):
    return subprocess.run(command, text=True, capture_output=True, check=False, **options)


def copy_build_files(scratch):
    listing = run(["git", "ls-files", "-z"]).stdout.split("\0")
    wanted = [f for f in listing if os.path.basename(f) in ("BUILD", "WORKSPACE", ".bazelrc") or f.endswith((".bzl", ".BUILD"))]
    for path in filter(os.path.exists, wanted):
        os.makedirs(os.path.join(scratch, os.path.dirname(path)), exist_ok=True)
        with open(path, encoding="utf-8") as source, open(os.path.join(scratch, path), "w", encoding="utf-8") as copy:
            copy.write(source.read())


def add_probes(scratch, libraries):
    """Adds the probes to the BUILD files of the scratch workspace; returns probe label -> (package, library)."""
    packages = sorted({library[2:].split(":")[0] for library in libraries})
    probes = {}
    for package in packages:
        if LAW[layer_of(package)] is None:
            continue
        with open(os.path.join(scratch, package, "BUILD"), "a", encoding="utf-8") as build:
            for library in libraries:
                if library.startswith(f"//{package}:"):
                    continue
                name = f"layering_probe_{len(probes)}"
                probes[f"//{package}:{name}"] = (package, library)
                build.write(f'\ncc_library(name = "{name}", deps = ["{library}"])\n')
    return probes


def judge(probes, refused):
    """One test case for each pair of packages."""
    pairs = {}
    for probe, (package, library) in probes.items():
        pairs.setdefault((package, library[2:].split(":")[0]), []).append((library, probe in refused))
    cases = []
    for (package, target), results in sorted(pairs.items()):
        if allowed(layer_of(package), layer_of(target)):
            # A package may keep some of its libraries to itself.
            well = not all(was_refused for _, was_refused in results)
            cases.append((f"layering: //{package} may depend on //{target}", well, "it is refused"))
        else:
            open_ones = [library for library, was_refused in results if not was_refused]
            name = f"layering: //{package} may not depend on //{target}"
            cases.append((name, not open_ones, "but it can, through " + " ".join(open_ones)))
    return [count_tests.case(count_tests.PASSED if well else count_tests.FAILED, name, "" if well else why) for name, well, why in cases]


def check(bazel, scratch):
    copy_build_files(scratch)
    query = run(bazel + ["query", "kind(cc_library, //include/... + //examples/... + //lib/... + //sim/... + //tests/...)"], cwd=scratch)
    # A target's sources as build/cc.bzl hands them to its units are its own.
    libraries = [library for library in query.stdout.split() if not library.endswith("_sources")]
    if query.returncode != 0 or not libraries:
        return [count_tests.case(count_tests.FAILED, "layering", "bazel query failed: " + query.stderr[-2000:])]
    strangers = sorted({p for p in (l[2:].split(":")[0] for l in libraries) if layer_of(p) is None})
    if strangers:
        return [count_tests.case(count_tests.FAILED, "layering", f"the law in ci/check_visibility.py does not know //{p}") for p in strangers]
    probes = add_probes(scratch, libraries)
    build = run(bazel + ["build", "--nobuild", "--keep_going", "--"] + list(probes), cwd=scratch)
    refused = {probe for library, probe in NOT_VISIBLE.findall(build.stderr) if probes.get(probe, ("", ""))[1] == library}
    return judge(probes, refused)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases")
    arguments = parser.parse_args()
    # A directory of its own for Bazel: the probes must not disturb anybody's build.
    with tempfile.TemporaryDirectory(prefix="tokamak-layering-") as scratch:
        workspace = os.path.join(scratch, "workspace")
        os.mkdir(workspace)
        bazel = ["bazel", f"--output_base={scratch}/output", "--max_idle_secs=60"]
        try:
            cases = check(bazel, workspace)
        finally:
            run(bazel + ["shutdown"], cwd=workspace)
            run(["chmod", "-R", "u+w", scratch])
    failed = [c for c in cases if c["status"] == count_tests.FAILED]
    if arguments.cases:
        count_tests.append(arguments.cases, cases, "")
    else:
        for c in failed:
            print(f"{c['name']}: {c['reason']}", file=sys.stderr)
    print(f"layering: {len(cases) - len(failed)} of {len(cases)} pairs of packages are as the law says")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
