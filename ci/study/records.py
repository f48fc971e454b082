"""Records: what each part of the study measured, one compressed file of JSON each, with what is needed to judge and to repeat it.

  {"part": ..., "state": "measured" | "partly" | "failed", "trouble": [line, ...], "mode": "quick" | "full",
   "environment": {"machine", "processors", "kernel", "date", "commit"},
   "runs": [{"name", "command", "seconds", "load": [before, after], "others": part of the processors, "results": what it printed}]}
"""

import gzip
import json
import os

STATES = ("measured", "partly", "failed")


class Malformed(Exception):
    """A file that is no record; the text names it and the remedy."""


def path_of(folder, part):
    return os.path.join(folder, part + ".json.gz")


def make(part, mode, environment, runs, trouble):
    state = "measured" if not trouble else "partly" if runs else "failed"
    return {"part": part, "state": state, "trouble": trouble, "mode": mode, "environment": environment, "runs": runs}


def write(folder, record):
    os.makedirs(folder, exist_ok=True)
    path = path_of(folder, record["part"])
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    with open(path + ".new", "wb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))  # the same record has the same bytes
    os.replace(path + ".new", path)


def read(folder, part):
    """The record, or None where that part was not measured."""
    path = path_of(folder, part)
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            record = json.load(file)
    except FileNotFoundError:
        return None
    except (ValueError, EOFError, OSError) as error:
        raise Malformed(f"{path} is no compressed JSON ({error}): measure it again with --only {part}") from error
    keys = ("part", "state", "trouble", "mode", "environment", "runs")
    if not isinstance(record, dict) or any(key not in record for key in keys) or record["part"] != part:
        raise Malformed(f"{path} is no record of '{part}': measure it again with --only {part}")
    return record


def runs_of(record, name=None):
    """Those of that name, or all."""
    return [run for run in (record or {}).get("runs", []) if name is None or run["name"] == name]


def names_of(record):
    """Of its runs, each once, in the order in which they were first run."""
    return list(dict.fromkeys(run["name"] for run in runs_of(record)))


def without_places(value, places):
    """`value` with each text's places of this machine replaced by what they are called: [(place, name)], in that order."""
    if isinstance(value, dict):
        return {key: without_places(one, places) for key, one in value.items()}
    if isinstance(value, list):
        return [without_places(one, places) for one in value]
    if isinstance(value, str):
        for place, name in places:
            value = value.replace(place, name)
    return value
