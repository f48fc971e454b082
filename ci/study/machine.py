"""What a measurement was made on, and what else the machine was busy with meanwhile."""

import datetime
import os
import platform
import resource
import subprocess
import time


def processor_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())


def memory_gib():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)


def commit_of(root):
    """Of the sources that are measured: `-dirty` where one of them was changed since. Documents are none, the study's own files among them."""
    git = ["git", "-C", root]
    commit = subprocess.run([*git, "describe", "--always"], capture_output=True, text=True, check=False).stdout.strip()
    if not commit:
        return "unknown"
    changed = subprocess.run([*git, "diff-index", "--name-only", "HEAD", "--", ".", ":(exclude)docs"], capture_output=True, text=True, check=False)
    return commit + ("-dirty" if changed.stdout.strip() else "")


def environment(root):
    processors = len(os.sched_getaffinity(0))
    return {
        "machine": f"{processors} x {processor_model()}, {memory_gib():.0f} GiB",
        "processors": processors,
        "kernel": f"{platform.system()} {platform.release()}",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit_of(root),
    }


def load():
    """Of the last minute."""
    return round(os.getloadavg()[0], 2)


def busy_seconds():
    """Of all processors since they were started; time that other guests of the host took is in it."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, idle, iowait, *others = (int(word) for word in file.readline().split()[1:9])
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Of processors, by this process and by those that it started and that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Watch:
    """From its making to stop(): how long, the load, and what part of the processors others were using."""

    def __init__(self):
        self.load = load()
        self.begin, self.busy, self.own = time.monotonic(), busy_seconds(), own_seconds()

    def stop(self):
        seconds = time.monotonic() - self.begin
        others = busy_seconds() - self.busy - (own_seconds() - self.own)
        part = max(0.0, others) / max(seconds * os.cpu_count(), 1e-9)
        return {"seconds": round(seconds, 1), "load": [self.load, load()], "others": round(min(part, 1.0), 3)}
