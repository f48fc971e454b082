"""Two real tokd, watched as an operator watches them: Prometheus scrapes, promtool, Grafana's dashboard, systemd, a browser.

What the documents, the alerts and the dashboard name is compared with what a scrape gives.
"""

import ctypes
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.getcwd()
PATIENCE = 120  # seconds
SCRATCH = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "")

METRIC = re.compile(r"tokamak_[a-z0-9_]+")
ROW = re.compile(r"^\| `(tokamak_[a-z0-9_]+)` \| (gauge|counter|histogram) \|([^|]*)\|", re.MULTILINE)
TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
SERIES = re.compile(r"^(tokamak_[a-z0-9_]+)(?:\{(.*)\})? \S+$", re.MULTILINE)

# What a program calls itself; the kernel keeps 15 bytes.
HOSTILE = "<img src=q>\"'&"


def path(name):
    return os.path.join(ROOT, name)


def read(name):
    with open(path(name), encoding="utf-8") as file:
        return file.read()


def eventually(check, what):
    """What `check` returns as soon as it is true."""
    limit = time.monotonic() + PATIENCE
    while True:
        result = check()
        if result:
            return result
        if time.monotonic() > limit:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.05)


def fetch(url, host=None):
    """Status and text."""
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Node:
    """A tokd with --http, and what else there is of its flags."""

    def __init__(self, folder, index, *flags, environment=None):
        self.socket = f"{folder}/node{index}.sock"
        self.log_file = f"{folder}/node{index}.log"
        with open(self.log_file, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [path("lib/daemon/tokd"), "--name", f"node{index}", "--listen", f"127.0.0.{index}:7000", "--device",
                 f"soft:udp@127.0.0.{index}", "--memory", "32MiB", "--socket", self.socket, "--http", "0", *flags],
                stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})
        self.url = eventually(lambda: re.search(r"page of the cluster: (http://\S+)/$", self.log(), re.MULTILINE), self.log())[1]
        eventually(lambda: fetch(self.url + "/readyz")[0] == 200, "ready")

    def log(self):
        with open(self.log_file, encoding="utf-8") as file:
            return file.read()

    def tok(self, *arguments, **options):
        return subprocess.run([path("lib/cli/tok"), "--socket", self.socket, *arguments], check=True, capture_output=True,
                              timeout=PATIENCE, **options).stdout

    def scrape(self):
        status, text = fetch(self.url + "/metrics")
        assert status == 200, text
        return text

    def number(self, series):
        """The value of one series, as it is written."""
        found = re.search("^" + re.escape(series) + r" (\S+)$", self.scrape(), re.MULTILINE)
        return float(found[1]) if found else None

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE)


class HoldingProgram:
    """A program with a hostile name that has an unsealed object; docs/client-protocol.md is all it knows."""

    def __init__(self, socket_path):
        name = ctypes.create_string_buffer(16)
        libc = ctypes.CDLL(None)
        libc.prctl(16, name, 0, 0, 0)  # PR_GET_NAME
        libc.prctl(15, HOSTILE.encode(), 0, 0, 0)  # PR_SET_NAME
        try:
            self.connection = socket.socket(socket.AF_UNIX)
            self.connection.settimeout(PATIENCE)
            self.connection.connect(socket_path)
            self.ask(1, struct.pack("<BI", 1, 1) + b"x" + struct.pack("<Q", 0))
            self.ask(2, b"\x01" * 20 + struct.pack("<QQQBI", 4096, 0, 0, 0, 0))
        finally:
            libc.prctl(15, name.value, 0, 0, 0)

    def ask(self, kind, body):
        frame = struct.pack("<IHHQII", 0x4b414d54, 5, kind, kind, len(body), 0) + body
        self.connection.sendall(struct.pack("<I", len(frame)) + frame)
        answer = self.connection.recv(65536)
        status = struct.unpack_from("<I", answer, 4 + 20)[0]
        assert status == 0, answer

    def close(self):
        self.connection.close()


class OperationTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(dir="/tmp", prefix="tokop")
        cls.folder = cls.scratch.name
        cls.one = Node(cls.folder, 1)
        cls.two = Node(cls.folder, 2, "--directory", "tokd@127.0.0.1:7000")
        cls.nodes = [cls.one, cls.two]
        # One small object, which is brought, and a large one, by each protocol that a program may choose.
        for name, size in (("small", 100), ("large", 2 << 20)):
            with open(f"{cls.folder}/{name}", "wb") as file:
                file.write(os.urandom(size))
            cls.one.tok("put", f"{cls.folder}/{name}", "--as", name)
            cls.two.tok("get", name, "-o", f"{cls.folder}/got")
        cls.two.tok("get", "small", "-o", f"{cls.folder}/got")

    @classmethod
    def tearDownClass(cls):
        for node in reversed(cls.nodes):
            node.stop()
        cls.scratch.cleanup()

    # ---- metrics

    def test_promtool_likes_a_scrape(self):
        for node in self.nodes:
            done = subprocess.run(["promtool", "check", "metrics"], input=node.scrape(), capture_output=True, text=True, check=False,
                                  timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_the_document_names_what_a_scrape_gives(self):
        documented = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(read("docs/metrics.md"))}
        text = self.two.scrape()
        labels = {}
        for name, inside in SERIES.findall(text):
            found = set(re.findall(r'(\w+)="', inside)) - {"le"}
            labels.setdefault(re.sub(r"_(bucket|sum|count)$", "", name) if "duration" in name else name, set()).update(found)
        given = {name: (kind, tuple(sorted(labels[name]))) for name, kind in TYPE.findall(text)}
        self.assertGreater(len(given), 70)
        self.maxDiff = None
        self.assertEqual(documented, given)

    def test_what_was_done_is_counted(self):
        self.assertEqual(self.one.number("tokamak_store_kept_bytes") // (2 << 20), 1)
        self.assertGreater(self.two.number("tokamak_pulled_bytes_total"), 2 << 20)
        moved = sum(self.two.number(f'tokamak_engine_pulled_bytes_total{{engine="1",protocol="{protocol}"}}')
                    for protocol in ("eager", "read", "write"))
        self.assertGreaterEqual(moved, 2 << 20)
        count = 'tokamak_get_duration_seconds_count{protocol="%s",size="%s"}'
        self.assertGreaterEqual(self.two.number(count % ("local", "4KiB")), 1)
        self.assertGreaterEqual(sum(self.two.number(count % (protocol, "16MiB")) for protocol in ("eager", "read", "write")), 1)
        self.assertEqual(self.one.number('tokamak_directory_up{kind="serve"}'), 1)
        self.assertEqual(self.two.number('tokamak_directory_up{kind="tokd"}'), 1)

    def test_garbage_is_logged_once_and_counted(self):
        before = self.one.number("tokamak_clients_protocol_errors_total")
        for _ in range(5):
            with socket.socket(socket.AF_UNIX) as garbage:
                garbage.settimeout(PATIENCE)
                garbage.connect(self.one.socket)
                garbage.sendall(b"\x18\0\0\0" + b"nonsense" * 3)
                self.assertEqual(garbage.recv(1), b"")
        self.assertEqual(self.one.number("tokamak_clients_protocol_errors_total"), before + 5)
        self.assertEqual(self.one.log().count("broke the protocol"), 1)
        stat = self.one.tok("stat").decode()
        self.assertRegex(stat, r"clients_protocol_errors_total +5\b")
        self.assertRegex(stat, r"build_info\{[0-9]+\.[0-9]+\.[0-9]+[^}]*\} +1\b")
        self.assertRegex(stat, r"uptime_seconds +[0-9]+\b")

    def test_a_peer_that_dies_is_named_in_the_log(self):
        three = Node(self.folder, 3, "--directory", "tokd@127.0.0.1:7000", "--lease", "1s")
        try:
            for name in ("of three", "more of three"):
                three.tok("put", f"{self.folder}/small", "--as", name)
            self.two.tok("get", "of three", "-o", f"{self.folder}/got")
        finally:
            three.process.kill()
            three.process.wait(timeout=PATIENCE)
        with self.assertRaises(subprocess.CalledProcessError):
            self.two.tok("get", "more of three", "-o", f"{self.folder}/got", "--timeout", "1s")
        eventually(lambda: self.two.log().count("node node3 does not answer") == 1, self.two.log())
        eventually(lambda: b"node3" not in self.two.tok("nodes"), "node3's lease ends")

    # ---- what is shipped for Prometheus and Grafana

    def known(self):
        names = {name for name, _ in TYPE.findall(self.two.scrape())}
        return names | {f"{name}_{part}" for name in names if name.endswith("_duration_seconds") for part in ("bucket", "sum", "count")}

    def expressions(self):
        """Of the dashboard, as Prometheus takes them."""
        panels = json.loads(read("share/grafana/tokamak.json"))["panels"]
        return [target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*") for panel in panels for target in panel["targets"]]

    def test_the_dashboard_and_the_alerts_name_metrics_that_exist(self):
        rules = "\n".join(re.findall(r"expr: *(?:\|\n)?((?:.|\n)*?)\n +(?:for|labels):", read("share/prometheus/tokamak.rules.yml")))
        expressions = self.expressions()
        self.assertGreater(len(expressions), 20)
        for text in expressions + [rules]:
            named = set(METRIC.findall(text))
            self.assertTrue(named, text)
            self.assertEqual(named - self.known(), set(), text)

    def test_the_alerts_do_what_their_tests_say(self):
        for command in (["check", "rules", "tokamak.rules.yml"], ["test", "rules", "tokamak.rules.test.yml"]):
            done = subprocess.run(["promtool", *command], cwd=path("share/prometheus"), capture_output=True, text=True, check=False,
                                  timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_is_tested_and_documented(self):
        alerts = set(re.findall(r"alert: (\w+)", read("share/prometheus/tokamak.rules.yml")))
        self.assertGreater(len(alerts), 10)
        self.assertEqual(set(re.findall(r'alertname="(\w+)"', read("share/prometheus/tokamak.rules.test.yml"))), alerts)
        self.assertEqual(set(re.findall(r"^\| `(Tokamak\w+)` \|", read("docs/operations.md"), re.MULTILINE)), alerts)

    def test_prometheus_scrapes_two_nodes_and_answers(self):
        port = free_port()
        config = f"{self.folder}/prometheus.yml"
        targets = [node.url.removeprefix("http://") for node in self.nodes]
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "200ms"},
                       "rule_files": [path("share/prometheus/tokamak.rules.yml")],
                       "scrape_configs": [{"job_name": "tokamak", "static_configs": [{"targets": targets}]}]}, file)
        with open(f"{self.folder}/prometheus.log", "w", encoding="utf-8") as log:
            prometheus = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=subprocess.STDOUT)

        def query(expression):
            url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
            try:
                status, text = fetch(url)
            except OSError:
                return None  # it is not there yet
            self.assertIn(status, (200, 503), text)
            return json.loads(text)["data"]["result"] if status == 200 else None

        try:
            eventually(lambda: len(query('up{job="tokamak"} == 1') or []) == 2, "two nodes are scraped")
            objects = query("sum(tokamak_pulled_objects_total)")
            self.assertGreaterEqual(float(objects[0]["value"][1]), 2)
            self.assertGreater(float(query("sum(tokamak_pulled_bytes_total)")[0]["value"][1]), 2 << 20)
            half = query('histogram_quantile(0.5, sum by (le) (tokamak_get_duration_seconds_bucket{size="16MiB"}))')
            self.assertGreater(float(half[0]["value"][1]), 0)
            for expression in self.expressions():
                self.assertIsNotNone(query(expression), expression)
        finally:
            prometheus.terminate()
            prometheus.wait(timeout=PATIENCE)

    def test_a_node_answers_to_its_own_machines_names_alone(self):
        with tempfile.TemporaryDirectory(dir="/tmp", prefix="tokop") as folder:
            node = Node(folder, 3, "--http-host", "proxy.example", "--http-host", "tokd.example")
            try:
                own = socket.gethostname()
                for host in (own, own.upper() + ":9464", "localhost", "10.0.0.1:9464", "tokd.example", "proxy.example:80"):
                    self.assertEqual(fetch(node.url + "/healthz", host), (200, "ok\n"), host)
                whole = socket.getaddrinfo(own, None, flags=socket.AI_CANONNAME)[0][3]
                eventually(lambda: fetch(node.url + "/healthz", whole) == (200, "ok\n"), f"{whole} is known")
                for path_of in ("/", "/metrics", "/api/node"):
                    status, text = fetch(node.url + path_of, "evil.example")
                    self.assertEqual(status, 421, path_of)
                    self.assertRegex(text, "^evil.example is not known as a name of this machine: .*--http-host NAME\n$")
            finally:
                node.stop()

    # ---- health

    def test_a_node_without_its_directory_is_alive_and_not_ready(self):
        with tempfile.TemporaryDirectory(dir="/tmp", prefix="tokop") as folder:
            directory = Node(folder, 3)
            node = Node(folder, 4, "--directory", "tokd@127.0.0.3:7000")
            directory.process.kill()
            directory.process.wait(timeout=PATIENCE)
            eventually(lambda: fetch(node.url + "/readyz") == (503, "the directory is out of reach\n"), "not ready")
            self.assertEqual(node.number("tokamak_ready"), 0)
            self.assertEqual(node.number('tokamak_directory_up{kind="tokd"}'), 0)
            self.assertEqual(fetch(node.url + "/healthz"), (200, "ok\n"))
            named_last = json.loads(fetch(node.url + "/api/nodes")[1])
            self.assertFalse(named_last["located"])
            self.assertEqual(named_last["nodes"][-1]["node"], "node4")
            node.process.send_signal(signal.SIGSTOP)
            try:
                with self.assertRaises(OSError):
                    urllib.request.urlopen(node.url + "/healthz", timeout=0.2)
            finally:
                node.process.send_signal(signal.SIGCONT)
            node.process.kill()
            node.process.wait(timeout=PATIENCE)

    # ---- systemd

    def test_systemd_takes_the_unit(self):
        unit = f"{self.folder}/tokd.service"
        with open(unit, "w", encoding="utf-8") as file:
            file.write(read("share/systemd/tokd.service").replace("/usr/bin/tokd", path("lib/daemon/tokd")))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_service_manager_is_told(self):
        with tempfile.TemporaryDirectory(dir="/tmp", prefix="tokop") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"{folder}/notify")
            manager.settimeout(PATIENCE)
            node = Node(folder, 5, environment={"NOTIFY_SOCKET": f"{folder}/notify", "WATCHDOG_USEC": "400000"})
            words = []

            def hear(expected):
                while expected not in words:
                    words.append(manager.recv(4096).decode().split("\n")[0])
                words.clear()

            hear("READY=1")
            hear("WATCHDOG=1")
            node.process.send_signal(signal.SIGHUP)
            hear("RELOADING=1")
            hear("READY=1")
            node.process.terminate()
            hear("STOPPING=1")
            self.assertEqual(node.process.wait(timeout=PATIENCE), 0)

    # ---- the page

    def chromium(self, *flags):
        return subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                               "--disable-background-networking", f"--user-data-dir={self.folder}/chromium", "--enable-logging=stderr",
                               "--window-size=1400,1500", "--virtual-time-budget=9000", *flags, self.one.url + "/"],
                              capture_output=True, text=True, check=False, timeout=PATIENCE, env={**os.environ, "HOME": self.folder})

    def test_a_browser_shows_the_cluster(self):
        program = HoldingProgram(self.two.socket)
        self.addCleanup(program.close)
        held = HoldingProgram(self.one.socket)
        self.addCleanup(held.close)
        done = self.chromium("--dump-dom")
        page = done.stdout
        self.assertIn('<span id="state" role="status" class="">ready</span>', page, done.stderr[-3000:])
        for text in ("node1 (this)", "node2", "2 nodes: 2 alive", "127.0.0.2:7000", "soft:udp@127.0.0.1", "2.0 MiB", "of 2 objects that were looked at"):
            self.assertIn(text, re.sub(r"\d+ objects", "2 objects", page), text)
        self.assertIn("&lt;img src=q&gt;\"'&amp;", page, "a program's name is text")
        self.assertNotIn("<img", page)
        self.assertGreaterEqual(page.count("<canvas"), 2)
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "source: chrome://" not in line]
        self.assertEqual(said, [], "errors, or what the policy refused")
        outside = set(re.findall(r'(?:src|href)="([^"]*)"', page)) - {"data:,", "/uPlot.min.css", "/page.css", "/uPlot.iife.min.js", "/page.js"}
        self.assertEqual(outside, {self.two.url + "/"}, "nothing comes from elsewhere, and the other node's page is linked to")
        if SCRATCH:
            self.chromium(f"--screenshot={SCRATCH}/page.png")
            self.assertGreater(os.path.getsize(f"{SCRATCH}/page.png"), 10000)


if __name__ == "__main__":
    unittest.main()
