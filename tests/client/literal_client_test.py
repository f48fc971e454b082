"""docs/client-protocol.md is exact: a client that was written after it, and knows nothing else, works with a real tokd."""

import os
import re
import struct
import subprocess
import tempfile
import unittest

import literal_client
from literal_client import Client, Refused, id_of

ROOT = os.getcwd()


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


class LiteralClientTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir="/tmp")
        cls.path = cls.folder.name + "/s"
        cls.tokd = subprocess.Popen(
            [os.path.join(ROOT, "lib/daemon/tokd"), "--listen", "127.0.0.1:7117", "--device", "soft:udp@127.0.0.1", "--memory",
             "16MiB", "--socket", cls.path, "--name", "lonely", "--engines", "0"], stdout=subprocess.PIPE, text=True)
        assert " ready" in cls.tokd.stdout.readline()

    @classmethod
    def tearDownClass(cls):
        cls.tokd.terminate()
        assert cls.tokd.wait(60) == 0
        cls.tokd.stdout.close()
        cls.folder.cleanup()

    def connect(self, creates=True):
        client = Client(self.path, creates)
        self.addCleanup(client.close)
        return client

    def test_a_name_is_an_id(self):
        self.assertEqual(id_of("weights/7").hex(), "46b42c8ba9be036356c73fbb6385a3af2ef8fd71")
        self.assertEqual(id_of("").hex(), "88010eda4dd5ba85fb6dddc22f3020beb7a14a5e")

    def test_what_is_put_is_got(self):
        client = self.connect()
        self.assertEqual(client.node, "lonely")
        self.assertLessEqual(client.capacity, client.arena_size)
        client.put("large", b"0123456789" * 30_000, b"metadata")
        client.put("sure", b"bytes", confirmed=True)
        self.assertEqual([one["status"] for one in client.put_small({"a": b"1", "b": b"", "large": b"again"})], [0, 0, 6])
        self.assertEqual(client.get("large"), (b"0123456789" * 30_000, b"metadata"))
        reader = self.connect(creates=False)
        self.assertEqual(len(reader.descriptors), 1)
        self.assertEqual(reader.get("a"), (b"1", b""))
        with self.assertRaises(Refused) as refused:
            reader.delete("a")
        self.assertEqual(refused.exception.status, 7)
        for name in ("large", "sure", "a", "b"):
            client.delete(name)
        self.assertEqual(client.contains("large"), 0)

    def test_what_is_missing_is_an_error(self):
        client = self.connect()
        for call in (lambda: client.get("missing", 0), lambda: client.stat("missing")):
            with self.assertRaises(Refused) as refused:
                call()
            self.assertEqual(refused.exception.status, 5)
        with self.assertRaises(Refused) as refused:
            client.delete("missing")
        self.assertIn(refused.exception.status, (5, 14))  # 14: the directory has just begun, and cannot know it yet

    def test_objects_are_listed_and_described(self):
        client = self.connect()
        names = [f"listed{i}" for i in range(5)]
        for name in names:
            client.put(name, b"12345", b"67")
        listed = client.list(limit=2)
        self.assertEqual([one["id"] for one in listed], sorted(map(id_of, names)))
        self.assertEqual({(one["data"], one["metadata"], one["state"], one["origin"]) for one in listed}, {(5, 2, 1, 0)})
        stat = client.stat(names[0])
        self.assertEqual((stat["here"], stat["object"]["data"]), (1, 5))
        self.assertEqual(client.wait([*names, "missing"], 5, 10), [1, 1, 1, 1, 1, 0])
        self.assertEqual(client.wait(["missing"], 1, 0, anywhere=False), [0])
        self.assertEqual(client.evict(1 << 20), (0, 0))
        self.assertEqual((client.prefetch(names[0], pin=True), client.prefetch("missing", 0)), (0, 5))
        self.assertEqual([one["pinned"] for one in client.list() if one["id"] == id_of(names[0])], [1])
        client.unpin(names[0])
        self.assertEqual([one["pinned"] for one in client.list()], [0] * 5)
        for name in names:
            client.delete(name)

    def test_names_are_kept(self):
        client = self.connect()
        client.put("named", b"1", kept="named")
        client.put("unnamed", b"1")
        client.put_small({"small": b"1"})
        self.assertEqual({one["name"] for one in client.list()}, {"named", "small", ""})
        self.assertEqual(client.stat("named")["object"]["name"], "named")
        for wrong in ("another", "n" * 255):
            with self.assertRaises(Refused) as refused:
                client.put("wrong", b"1", kept=wrong)
            self.assertEqual(refused.exception.status, 3)
        for name in ("named", "unnamed", "small"):
            client.delete(name)

    def test_an_object_is_not_seen_before_it_is_sealed(self):
        creator, reader = self.connect(), self.connect(creates=False)
        creator.call(2, id_of("half") + struct.pack("<QQQB", 10, 0, 0, False) + literal_client.text("")).location()
        self.assertEqual(reader.contains("half"), 0)
        self.assertEqual([one["state"] for one in reader.list()], [0])
        creator.call(5, id_of("half")).end()
        self.assertEqual(reader.list(), [])

    def test_events_are_told(self):
        listener, client = self.connect(), self.connect()
        subscribed = listener.subscribe()
        client.put("told", b"123", kept="told")
        client.delete("told")
        events = []
        while len(events) < 2:
            dropped, more = listener.next_events(subscribed)
            self.assertEqual(dropped, 0)
            events += more
        self.assertEqual([(one["kind"], one["id"], one["data"], one["name"]) for one in events],
                         [(0, id_of("told"), 3, "told"), (1, id_of("told"), 3, "told")])

    def test_nodes_and_their_numbers(self):
        client = self.connect()
        node, device, numbers = client.node_stats()
        self.assertEqual((node, numbers["store_capacity_bytes"]), ("lonely", client.capacity))
        self.assertTrue(device.startswith("soft:udp@127.0.0.1"), device)
        self.assertEqual([(one["name"], one["is_this"]) for one in client.nodes()], [("lonely", 1)])

    def test_hello_comes_first(self):
        client = self.connect()
        client.call(16, struct.pack("<B", False))
        with self.assertRaises(AssertionError):  # the daemon ends the connection
            client.call(1, struct.pack("<B", 1) + literal_client.text("again") + struct.pack("<Q", 0))

    def test_the_page_names_every_kind_and_bound(self):
        page, protocol = read("docs/client-protocol.md"), read("lib/client/protocol/protocol.h")
        kinds = re.findall(r"^  k(\w+) = (\d+),", protocol[protocol.index("enum class Kind"):], re.M)
        named = re.findall(r"^\| (\d+) \| (\w+) \|", page, re.M)
        self.assertEqual([(name, number) for number, name in named], kinds)
        self.assertIn(f"**version** {re.search(r'kVersion = (.*);', protocol).group(1)}.", page)
        for bound in ("kMaxIds = 2048", "kMaxInlineBytes = 64 * 1024", "kMaxListed = 1024", "kMaxEvents = 1024", "kMaxNodes = 1024",
                      "kMaxHolders = 64", "kMaxPushed = 256", "kMaxNumbers = 1024", "kMaxName = 128", "kMaxAddress = 128", "kMaxErrorText = 400",
                      "kMaxObjectName = 255"):
            self.assertIn(bound, protocol, "the page has another")


if __name__ == "__main__":
    unittest.main()
