"""The lab of ci/softroce without a guest: what it accepts, how it judges, what it says when guests hang, die or fail."""

import contextlib
import io
import lzma
import os
import pathlib
import selectors
import socket
import subprocess
import tempfile
import threading
import unittest

from lab import accelerator, cache, errors, initramfs, kernel, machine, network, options, output, packages, session


def refusal(*arguments):
    """What the command line is told when it is refused."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            options.parse(list(arguments))
        except SystemExit as end:
            return f"{end.code} {said.getvalue().splitlines()[-1]}"
    return "accepted"


class OptionsTest(unittest.TestCase):
    def test_what_follows_the_dashes_is_the_command_as_it_is(self):
        got = options.parse(["--device", "siw", "--hosts=2", "--", "rping", "-s", "--", "--netem"])
        self.assertEqual(got.command, ("rping", "-s", "--", "--netem"))
        self.assertEqual((got.device, got.hosts, got.mtu, got.accel), ("siw", 2, 9000, "auto"))

    def test_malformed_requests_are_refused_with_what_is_wrong(self):
        self.assertIn("2 ci/softroce: error: COMMAND is missing", refusal("--hosts", "2"))
        self.assertIn("invalid choice: 'mlx5'", refusal("--device", "mlx5", "--", "true"))
        self.assertRegex(refusal("--hosts", "4", "--", "true"), "invalid choice: '?4")
        self.assertIn("'0' is no whole number from 576 to 65535", refusal("--mtu", "0", "--", "true"))
        self.assertIn("'-1' is no whole number", refusal("--timeout=-1", "--", "true"))
        self.assertIn("No closing quotation", refusal("--netem", "loss '1%", "--", "true"))
        self.assertIn("--prepare runs no COMMAND", refusal("--prepare", "--", "true"))
        self.assertIn("unrecognized arguments: ls", refusal("ls", "--", "true"))
        self.assertIn("'no/such.img' is no file", refusal("--drive", "no/such.img", "--", "true"))
        self.assertIn("'1=2' is neither NAME=VALUE nor NAME", refusal("--env", "1=2", "--", "true"))
        self.assertIn("give it one: LAB_TEST_UNSET=VALUE", refusal("--env", "LAB_TEST_UNSET", "--", "true"))
        self.assertIn("as in 7=10.0.0.3", refusal("--network", "eth0", "--", "true"))
        self.assertIn("'7=10.0.0': ", refusal("--network", "7=10.0.0", "--", "true"))
        self.assertIn("--network is for one guest", refusal("--network", "7=10.0.0.3", "--hosts=2", "--", "true"))

    def test_a_guests_network_may_be_somebody_elses_socket(self):
        self.assertEqual(options.parse(["--network", "7=10.0.0.3", "--", "true"]).network, (7, "10.0.0.3"))
        theirs, ours = socket.socketpair(type=socket.SOCK_DGRAM)
        with theirs, ours, selectors.DefaultSelector() as selector:
            one = network.Network(selector, 1, ours.fileno())
            one.ends[0].send(b"frame")
            self.assertEqual(theirs.recv(100), b"frame")
            one.close()
            ours.send(b"still the caller's")
            self.assertEqual(theirs.recv(100), b"still the caller's")

    def test_a_variable_by_name_alone_is_handed_over_and_no_other(self):
        os.environ["LAB_TEST_A"] = os.environ["LAB_TEST_B"] = "here"
        got = options.parse(["--env", "LAB_TEST_A", "--env", "C=a=b", "--", "true"]).environment
        self.assertEqual((got["LAB_TEST_A"], got["C"]), ("here", "a=b"))
        self.assertNotIn("LAB_TEST_B", got)


class InitramfsTest(unittest.TestCase):
    def test_modules_load_after_what_they_need(self):
        dependencies = "kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko\nkernel/net/9p/9pnet.ko:\n"
        dependencies += "kernel/fs/netfs/netfs.ko:\nkernel/drivers/virtio/virtio-pci.ko:\n"
        self.assertEqual(initramfs.load_order(dependencies, ["virtio_pci", "9p", "built_in"]), [
            "kernel/drivers/virtio/virtio-pci.ko", "kernel/fs/netfs/netfs.ko", "kernel/net/9p/9pnet.ko", "kernel/fs/9p/9p.ko"
        ])

    def test_the_archive_is_what_cpio_reads(self):
        made = initramfs.archive({"lab/odd name": (0o755, b"12345"), "init": (0o600, b"")})
        entries, at = {}, 0
        while True:
            self.assertEqual(made[at:at + 6], b"070701")
            fields = [int(made[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
            name = made[at + 110:at + 110 + fields[11] - 1].decode()
            data = at + 110 + fields[11] + -(110 + fields[11]) % 4
            if name == "TRAILER!!!":
                break
            entries[name] = (oct(fields[1]), made[data:data + fields[6]])
            at = data + fields[6] + -fields[6] % 4
        self.assertEqual(entries, {"lab": ("0o40755", b""), "lab/odd name": ("0o100755", b"12345"), "init": ("0o100600", b"")})

    def test_bash_reads_what_the_settings_say(self):
        told = {"one": "it's $HOME", "many": ["a b", "", "*", "'"]}
        script = initramfs.shell_settings(told) + b'printf "%s|" "$one" "${#many[@]}" "${many[@]}"'
        got = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode()
        self.assertEqual(got, "it's $HOME|4|a b||*|'|")


class KernelTest(unittest.TestCase):
    def test_the_image_is_found_behind_bytes_that_look_like_its_beginning(self):
        image = b"\x7fELF" + bytes(range(256)) * 50
        vmlinuz = b"MZ code" + kernel.XZ_MAGIC + b"no stream" + lzma.compress(image) + b"trailing code"
        self.assertEqual(kernel.decompressed(vmlinuz), image)

    def test_a_format_that_is_not_known_is_said(self):
        with self.assertRaisesRegex(errors.LabError, "xz"):
            kernel.decompressed(b"\x1f\x8b gzip")

    def test_the_newest_whole_kernel_is_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            self.assertIsNone(kernel.newest(place))
            for at, name in enumerate(["linux-6.1.0-9-amd64_6.1.9-1", "linux-6.1.0-10-amd64_6.1.10-1"], 1000):
                (place / name).mkdir()
                (place / name / "complete").touch()
                os.utime(place / name / "complete", (at, at))
            (place / "linux-6.1.0-11-amd64_6.1.11-1").mkdir()  # not whole
            newest = kernel.newest(place)
            self.assertEqual((newest.abi, newest.version), ("6.1.0-10-amd64", "6.1.10-1"))

    def test_apts_reason_is_what_is_told(self):
        said = "Reading package lists...\nErr:1 http://deb  404\nE: Failed to fetch http://deb/x  404  Not Found\nE: Unable"
        self.assertEqual(packages.last_error(said), "Failed to fetch http://deb/x  404  Not Found")
        with self.assertRaisesRegex(errors.LabError, "no-such-program is missing; run ci/setup --for lab"):
            packages.output(["no-such-program"], "it fails")

    def test_the_cache_is_found_whatever_home_says(self):
        kept = {name: os.environ.pop(name, None) for name in ("TOKAMAK_LAB_CACHE", "XDG_CACHE_HOME", "HOME")}
        try:
            os.environ["HOME"] = "/nowhere"
            self.assertEqual(cache.folder(), pathlib.Path(cache.home(), ".cache/tokamak-lab"))
            os.environ["XDG_CACHE_HOME"] = "/x"
            self.assertEqual(cache.folder(), pathlib.Path("/x/tokamak-lab"))
            os.environ["TOKAMAK_LAB_CACHE"] = "/y"
            self.assertEqual(cache.folder(), pathlib.Path("/y"))
        finally:
            for name in kept:
                os.environ.pop(name, None)
            os.environ.update({name: value for name, value in kept.items() if value is not None})


class MachineTest(unittest.TestCase):
    def test_a_guest_trusts_its_counter_where_it_is_one_that_this_machine_trusts(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "current_clocksource")
            for name, trusted in (("tsc\n", True), ("kvm-clock\n", False), ("hpet\n", False)):
                source.write_text(name)
                self.assertEqual("tsc=reliable" in machine.kernel_arguments("tcg", source).split(), trusted)
            source.write_text("tsc\n")
            self.assertEqual(machine.kernel_arguments("kvm", source), machine.KERNEL_ARGUMENTS)
            self.assertEqual(machine.kernel_arguments("tcg", pathlib.Path(folder, "none")), machine.KERNEL_ARGUMENTS)


class World:
    """Guests that are played by the test: `far` are their ends of the channels, by rank and name."""

    def __init__(self, test, hosts, timeout=30):
        self.selector = selectors.DefaultSelector()
        test.addCleanup(self.selector.close)
        self.far, guests = [], []
        for rank in range(hosts):
            pairs = {name: socket.socketpair() for name in machine.CHANNELS}
            for ours, theirs in pairs.values():
                ours.setblocking(False)
                test.addCleanup(theirs.close)
            self.far.append({name: theirs for name, (_, theirs) in pairs.items()})
            guest = machine.Guest(rank, subprocess.Popen(["sleep", "600"]), {name: ours for name, (ours, _) in pairs.items()})
            test.addCleanup(guest.close)
            guests.append(guest)
        self.guests = guests
        self.read_end, write_end = os.pipe()
        test.addCleanup(os.close, self.read_end)
        self.session = session.Session(self.selector, guests, timeout, stdout=write_end, stderr=write_end)
        self.write_end = write_end

    def say(self, rank, text, channel="control"):
        self.far[rank][channel].sendall(text.encode())

    def end(self, rank):
        for end in self.far[rank].values():
            end.close()

    def run(self):
        """(exit code, what was printed to the guests' outputs, what the lab said)."""
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            code = self.session.run()
        os.close(self.write_end)
        with os.fdopen(os.dup(self.read_end), "rb") as file:
            return code, file.read().decode(), told.getvalue()


class SessionTest(unittest.TestCase):
    def test_the_status_of_the_command_is_the_runs(self):
        world = World(self, 1)
        world.say(0, "barrier\n")
        world.say(0, "no newline", "stdout")
        world.say(0, "status 7\n")
        world.end(0)
        self.assertEqual(world.run(), (7, "no newline", ""))

    def test_a_guest_that_hangs_is_ended_with_its_console_shown(self):
        world = World(self, 1, timeout=0.2)
        world.say(0, "barrier\n")
        world.say(0, "rcu: INFO: self-detected stall\r\n", "console")
        code, _, told = world.run()
        self.assertEqual(code, errors.TIMED_OUT)
        self.assertIn("not ended after 0.2 s (--timeout)", told)
        self.assertIn("  | rcu: INFO: self-detected stall\n", told)

    def test_a_guest_that_dies_has_no_status_and_its_own_words_are_told(self):
        world = World(self, 1)
        world.say(0, "lab: up\r\nlab: interface v0 does not come up\r\n", "console")
        world.end(0)
        code, _, told = world.run()
        self.assertEqual(code, errors.NOT_RUN)
        self.assertIn("guest 0 ended without a status: interface v0 does not come up", told)

    def test_the_first_failure_by_rank_counts_and_lines_bear_their_rank(self):
        world = World(self, 2)
        for rank in (1, 0):
            world.say(rank, f"a{rank}\nb", "stdout")
            world.say(rank, f"status {rank * 3}\n")
            world.end(rank)
        code, printed, _ = world.run()
        self.assertEqual(code, 3)
        self.assertEqual(sorted(printed.splitlines()), ["[0] a0", "[0] b", "[1] a1", "[1] b"])

    def test_guests_meet_when_all_that_run_wait(self):
        world = World(self, 3)
        world.say(2, "status 0\n")
        world.end(2)
        world.say(0, "barrier\n")
        heard = []

        def play():
            world.far[0]["control"].settimeout(0.2)
            with self.assertRaises(TimeoutError):  # guest 1 is not there yet
                world.far[0]["control"].recv(10)
            world.far[0]["control"].settimeout(20)
            world.say(1, "barrier\n")
            for rank in (0, 1):
                heard.append(world.far[rank]["control"].recv(10))
                world.say(rank, "status 0\n")
                world.end(rank)

        player = threading.Thread(target=play)
        player.start()
        code, _, _ = world.run()
        player.join()
        self.assertEqual((code, heard), (0, [b"go\n", b"go\n"]))

    def test_a_killed_guest_is_dead_and_its_status_does_not_count(self):
        world = World(self, 2)
        world.say(0, "kill 1\n")
        world.say(0, "status 0\n")
        world.end(0)
        code, _, told = world.run()
        self.assertEqual((code, world.guests[1].process.returncode), (0, -9))
        self.assertIn("guest 1 is no more, as asked for", told)

    def test_when_one_failed_the_others_do_not_run_for_ever(self):
        world = World(self, 2)
        kept, session.SECONDS_AFTER_FAILURE = session.SECONDS_AFTER_FAILURE, 0.2
        self.addCleanup(setattr, session, "SECONDS_AFTER_FAILURE", kept)
        world.say(1, "status 4\n")
        world.end(1)
        code, _, told = world.run()
        self.assertEqual(code, 4)
        self.assertIn("a guest failed, and others did not end within 0.2 s", told)

    def test_what_the_kernel_complains_of_is_told(self):
        world = World(self, 1)
        world.say(0, "[    3.1] WARNING: CPU: 0 PID: 7 at rxe_comp.c\r\n", "console")
        world.say(0, "status 0\n")
        world.end(0)
        self.assertIn("the kernel of guest 0 complained: [    3.1] WARNING: CPU: 0", world.run()[2])


class OutputTest(unittest.TestCase):
    def test_a_line_without_an_end_is_bounded(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        stream = output.Stream(write_end, b"[0] ")
        reader = threading.Thread(target=lambda: os.read(read_end, 1 << 20))
        reader.start()
        stream.feed(b"x" * (output.MOST_LINE_BYTES + 1))
        os.close(write_end)
        reader.join()
        self.assertEqual(stream.line, b"")


def frame(to, sender, text):
    return machine.mac(to) + machine.mac(sender) + text


class SwitchTest(unittest.TestCase):
    def setUp(self):
        self.selector = selectors.DefaultSelector()
        self.addCleanup(self.selector.close)
        self.network = network.Network(self.selector, 3)
        self.addCleanup(self.network.close)
        for end in self.network.ends:
            end.setblocking(False)

    def turn(self):
        for key, mask in self.selector.select(0):
            key.data(mask)

    def received(self):
        got = []
        for rank, end in enumerate(self.network.ends):
            with contextlib.suppress(BlockingIOError):
                while True:
                    got.append((rank, end.recv(100)[12:]))
        return got

    def test_a_frame_goes_to_all_until_its_receiver_is_known(self):
        first, second, _ = self.network.ends
        first.send(frame(1, 0, b"who"))
        self.turn()
        self.assertEqual(self.received(), [(1, b"who"), (2, b"who")])
        second.send(frame(0, 1, b"me"))
        self.turn()
        self.assertEqual(self.received(), [(0, b"me")])

    def test_frames_to_a_guest_that_does_not_read_wait_and_are_bounded(self):
        first, second, third = self.network.ends
        second.send(frame(0, 1, b"me"))
        self.turn()
        self.received()
        for number in range(50):  # more than a socket holds
            first.send(frame(1, 0, b"%d" % number))
            self.turn()
        got = []
        while len(got) < 50:
            before = len(got)
            got += self.received()
            self.turn()
            self.assertGreater(len(got), before)
        self.assertEqual(got, [(1, b"%d" % number) for number in range(50)])

    def test_a_guest_that_is_gone_holds_nobody_up(self):
        first, second, third = self.network.ends
        second.close()
        first.send(frame(2, 0, b"to you"))
        self.turn()
        self.assertEqual(third.recv(100)[12:], b"to you")
        self.network.ends.remove(second)


class AcceleratorTest(unittest.TestCase):
    def guest_that_says(self, *pieces):
        def start(_kernel, _accel, _options):
            ours, theirs = socket.socketpair()
            for piece in pieces:
                theirs.sendall(piece)
            if not pieces:
                self.addCleanup(theirs.close)  # silent, not dead
            else:
                theirs.close()
            return machine.Guest(0, subprocess.Popen(["sleep", "600"]), {"console": ours})

        return start

    def test_a_guest_comes_up_when_it_says_its_word(self):
        self.assertTrue(accelerator.comes_up(None, self.guest_that_says(b"SeaBIOS\r\nlab:", b" up\r\n"), 20))

    def test_one_that_aborts_or_hangs_does_not(self):
        self.assertFalse(accelerator.comes_up(None, self.guest_that_says(b"error: failed to set MSR 0x10a\n"), 20))
        self.assertFalse(accelerator.comes_up(None, self.guest_that_says(), 0.1))

    def test_the_answer_is_remembered_until_the_machine_boots_again(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            self.assertIsNone(accelerator.remembered(place))
            accelerator.remember(place, "tcg")
            self.assertEqual(accelerator.remembered(place), "tcg")
            (place / "accelerator").write_text("another-boot kvm\n")
            self.assertIsNone(accelerator.remembered(place))
            self.assertEqual(os.listdir(folder), ["accelerator"])


if __name__ == "__main__":
    unittest.main()
