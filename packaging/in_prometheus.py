"""Asks the Prometheus of try_packages until it has what the daemon counted of the programs' puts and gets, and says what."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request

ASKED = ("tokamak_store_sealed_objects", "sum(tokamak_get_duration_seconds_count)")


def value(query):
    url = "http://127.0.0.1:9090/api/v1/query?query=" + urllib.parse.quote(query)
    with urllib.request.urlopen(url, timeout=10) as answer:
        found = json.load(answer)["data"]["result"]
    return float(found[0]["value"][1]) if found else 0


def main():
    limit = time.monotonic() + 120
    while True:
        try:
            values = {query: value(query) for query in ASKED}
        except (urllib.error.URLError, ConnectionError):
            values = {}  # it starts
        if values and all(values.values()):
            print(", ".join(f"{query} = {number:g}" for query, number in values.items()))
            return
        if time.monotonic() > limit:
            raise SystemExit(f"Prometheus has not what is asked for: {values}")
        time.sleep(0.2)


main()
