"""Three tokd that were started by hand, watched by tok: every node is shown, whichever is asked, and what becomes of one is seen at once."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

ROOT = os.getcwd()
PATIENCE = 120  # seconds
LEASE = 4  # seconds


def path(name):
    return os.path.join(ROOT, name)


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


class Node:
    """A tokd; the first serves the directory."""

    def __init__(self, folder, index):
        self.index = index
        self.socket = f"{folder}/n{index}.sock"
        self.log_file = f"{folder}/n{index}.log"
        directory = [] if index == 1 else ["--directory", "tokd@127.0.0.1:7000"]
        with open(self.log_file, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [path("lib/daemon/tokd"), "--name", f"n{index}", "--listen", f"127.0.0.{index}:7000", "--device",
                 f"soft:udp@127.0.0.{index}", "--memory", "32MiB", "--socket", self.socket, "--lease", f"{LEASE}s", *directory],
                stdout=log, stderr=subprocess.STDOUT)
        eventually(lambda: os.path.exists(self.socket) and self.run("stat").returncode == 0, "ready")

    def log(self):
        with open(self.log_file, encoding="utf-8") as file:
            return file.read()

    def run(self, *arguments):
        return subprocess.run([path("lib/cli/tok"), "--socket", self.socket, *arguments], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def tok(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def nodes(self):
        return {node["name"]: node for node in json.loads(self.tok("nodes", "--json"))}


class Terminal:
    """`tok top` at a terminal of that size."""

    def __init__(self, node, columns, lines):
        self.person, self.terminal = pty.openpty()
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.mode = termios.tcgetattr(self.terminal)
        self.drawn = ""
        self.top = subprocess.Popen([path("lib/cli/tok"), "--socket", node.socket, "top", "--interval", "200ms"],
                                    stdin=self.terminal, stdout=self.terminal, stderr=self.terminal)

    def view(self):
        """The latest whole view, as lines; none yet: no lines."""
        while select.select([self.person], [], [], 0)[0]:
            self.drawn += os.read(self.person, 65536).decode()
        views = re.findall(r"\033\[H(.*?)\033\[J", self.drawn, re.DOTALL)
        return [line.removesuffix("\033[K") for line in views[-1].split("\r\n")][:-1] if views else []

    def await_view(self, check):
        return eventually(lambda: (lambda view: view if view and check("\n".join(view)) else None)(self.view()), self.drawn[-2000:])

    def type(self, keys):
        os.write(self.person, keys.encode())

    def end(self):
        """How it ended, and whether the terminal is as it was."""
        eventually(lambda: (self.view(), self.top.poll() is not None)[1], "the end of top")
        return self.top.returncode, termios.tcgetattr(self.terminal) == self.mode

    def close(self):
        if self.top.poll() is None:
            self.top.kill()
        self.top.wait()
        os.close(self.person)
        os.close(self.terminal)


class TopTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(dir="/tmp", prefix="toktop")
        cls.nodes = [Node(cls.scratch.name, index) for index in (1, 2, 3)]
        with open(f"{cls.scratch.name}/large", "wb") as file:
            file.write(bytes(4 << 20))
        cls.nodes[2].tok("put", f"{cls.scratch.name}/large", "--as", "large")

    @classmethod
    def tearDownClass(cls):
        for node in reversed(cls.nodes):
            node.process.terminate()
            assert node.process.wait(timeout=PATIENCE) == 0, node.log()
        cls.scratch.cleanup()

    def terminal(self, *arguments):
        made = Terminal(*arguments)
        self.addCleanup(made.close)
        return made

    def test_whichever_node_is_asked_shows_all(self):
        for node in self.nodes:
            shown = json.loads(node.tok("top", "-n", "1", "--json"))
            self.assertEqual([one["name"] for one in shown["nodes"]], ["n1", "n2", "n3"])
            self.assertEqual([one["state"] for one in shown["nodes"]], ["alive"] * 3)
            self.assertGreaterEqual(shown["nodes"][2]["used_bytes"], 4 << 20)
            self.assertEqual(shown["nodes"][0]["objects"], 0)
            self.assertGreaterEqual(shown["total"]["used_bytes"], 4 << 20)
            text = node.tok("top", "-n", "1")
            self.assertIn(f"3 nodes: 3 alive; asked n{node.index}\n", text)
            self.assertNotIn("no numbers", text)

    def test_a_transfer_shows_on_both_sides(self):
        terminal = self.terminal(self.nodes[0], 120, 30)
        terminal.await_view(lambda text: "0 B/s" in text)
        self.nodes[1].tok("get", "large", "-o", f"{self.scratch.name}/got")
        view = terminal.await_view(lambda text: text.count("MiB/s") >= 4)  # in, out, and both in the row for all
        self.assertRegex(view[4], r"^n2 .*MiB/s .*alive")
        self.assertRegex(view[5], r"^n3 .*MiB/s .*alive")

    def test_wide_and_narrow_terminals_end_by_q(self):
        for columns, shown in ((120, ["MEMORY", "OF", "PULLS", "OBJECTS"]), (60, [])):
            terminal = self.terminal(self.nodes[0], columns, 30)
            view = terminal.await_view(lambda text: "n3" in text and "0 B/s" in text)
            for line in view:
                self.assertLessEqual(len(line), columns)
            for title in ["NODE", "USED", "IN", "OUT", "STATE", *shown]:
                self.assertIn(title, view[1])
            self.assertTrue(view[2].startswith("total"), view)
            terminal.type("q")
            self.assertEqual(terminal.end(), (0, True))

    def test_keys_scroll_where_nodes_outnumber_lines(self):
        terminal = self.terminal(self.nodes[0], 80, 6)
        terminal.await_view(lambda text: "nodes 1 to 1 of 3" in text)
        for keys, first in (("\033[B", 2), ("k", 1), ("G", 3), ("\033[H", 1), (" ", 2)):
            terminal.type(keys)
            view = terminal.await_view(lambda text, first=first: f"nodes {first} to {first} of 3" in text)
            self.assertTrue(view[3].startswith(f"n{first} "), view)
            self.assertLessEqual(len(view), 5)

    def test_an_interrupted_top_leaves_the_terminal_as_it_was(self):
        terminal = self.terminal(self.nodes[0], 80, 24)
        terminal.await_view(lambda text: "n3" in text)
        terminal.top.send_signal(signal.SIGINT)
        self.assertEqual(terminal.end(), (-signal.SIGINT, True))

    def test_what_becomes_of_a_node_is_seen_at_once_and_logged_once(self):
        node, others = self.nodes[2], self.nodes[:2]
        node.process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        self.addCleanup(node.process.send_signal, signal.SIGCONT)
        found = others[1].nodes()["n3"]
        if found["state"] != "silent":  # a slow machine took all of its lease
            self.assertEqual(found["state"], "suspected")
            self.assertLess(found["unheard_seconds"], time.monotonic() - stopped + LEASE)
        eventually(lambda: others[0].nodes()["n3"]["state"] == "silent", "silence")
        self.assertRegex(others[0].tok("nodes"), r"n3 .*silent, seen \d+ s ago")
        self.assertIn("1 silent", others[1].tok("top", "-n", "1"))
        for other in others:
            eventually(lambda other=other: "node n3 is silent" in other.log(), other.log())
        node.process.send_signal(signal.SIGCONT)
        for other in others:
            eventually(lambda other=other: "node n3 is back" in other.log(), other.log())
            eventually(lambda other=other: other.nodes()["n3"]["state"] == "alive", "life")
            self.assertEqual(other.log().count("node n3 is silent"), 1)
            self.assertEqual(other.log().count("node n3 is back"), 1)


if __name__ == "__main__":
    unittest.main()
