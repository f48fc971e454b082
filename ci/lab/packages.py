"""Files of Debian's packages, without installing them and without root."""

import os
import re
import subprocess

from lab.errors import LabError

SECONDS_TO_FETCH = 900
ENVIRONMENT = {**os.environ, "LC_ALL": "C", "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"}


def last_error(text):
    """The line of apt's messages that says why."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line[2:].strip() for line in lines if line.startswith("E:")]
    return (errors or lines or ["no message"])[0]


def output(command, what, directory=None):
    """What a program prints; LabError with its last words where it fails."""
    try:
        done = subprocess.run(command, cwd=directory, env=ENVIRONMENT, capture_output=True, text=True, errors="replace",
                              timeout=SECONDS_TO_FETCH, stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        raise LabError(f"{what}: {command[0]} is missing; run ci/setup --for lab") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{what}: {command[0]} did not end within {SECONDS_TO_FETCH} s; try again") from None
    if done.returncode != 0:
        raise LabError(f"{what}: {last_error(done.stderr + done.stdout)}")
    return done.stdout


def candidate(package):
    """The version that apt would install now."""
    shown = output(["apt-cache", "show", "--no-all-versions", package], f"apt knows no {package}, run apt-get update")
    return re.search(r"^Version: (\S+)$", shown, re.MULTILINE)[1]


def dependency(package, pattern):
    """The first dependency of a package whose name matches."""
    shown = output(["apt-cache", "depends", package], f"apt knows no {package}, run apt-get update")
    found = re.search(rf"^ *Depends: ({pattern})$", shown, re.MULTILINE)
    if not found:
        raise LabError(f"{package} depends on no {pattern}: run apt-get update, with Debian 12's sources")
    return found[1]


def fetch(packages, directory):
    """Downloads {name: version} as .deb files into a folder; apt checks their signatures. Returns {name: path}."""
    names = [f"{name}={version}" for name, version in packages.items()]
    download = ["apt-get", "-q", "download", *names]
    what = f"cannot download {' '.join(names)}"
    try:
        output(download, what, directory)
    except LabError:
        # A mirror keeps the newest version only, and the lists may know an older one.
        if os.geteuid() != 0:
            raise
        output(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", "update"], what)
        output(download, what, directory)
    return {name: next(directory.glob(f"{name}_*.deb")) for name in packages}


def unpack(deb, directory, *tar_options):
    """Unpacks files of a .deb below a folder."""
    directory.mkdir(exist_ok=True)
    pipe(["dpkg-deb", "--fsys-tarfile", str(deb)], ["tar", "-x", "-C", str(directory), "--no-same-owner", *tar_options])


def pipe(*commands):
    """Runs commands, each fed by the one before; LabError where one fails."""
    running = []
    for command in commands:
        source = running[-1].stdout if running else subprocess.DEVNULL
        running.append(subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT))
        if len(running) > 1:
            source.close()
    message = running[-1].communicate()[1].decode(errors="replace")
    failed = [command[0] for command, process in zip(commands, running) if process.wait() != 0]
    if failed:
        raise LabError(f"{' '.join(failed)} failed on a downloaded package: {last_error(message)}")
