"""The installed verbs seam, as a program outside of this tree has it: headers, library and pkg-config file, and nothing else of ours."""

import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = os.getcwd()
BUILT = os.path.join(ROOT, "lib/verbs/open")
LIBRARY = os.path.join(BUILT, "libtokamak-rdma.so")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wnon-virtual-dtor", "-Werror"]
with open("VERSION", encoding="utf-8") as file:
    VERSION = file.read().strip()


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} exits with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class InstalledTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = os.path.join(cls.folder, "prefix")
        cls.libraries = os.path.join(cls.prefix, "lib")
        cls.headers = os.path.join(cls.prefix, "include/tokamak-verbs")
        run("packaging/install_verbs", BUILT, VERSION, "", cls.prefix, cls.libraries)
        cls.environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(cls.libraries, "pkgconfig"), LD_LIBRARY_PATH=cls.libraries)

    def pkg_config(self, *arguments):
        return run("pkg-config", *arguments, env=self.environment).split()

    def installed_headers(self):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.headers) for name in names]
        return sorted(os.path.relpath(path, self.headers) for path in found)

    def test_each_header_compiles_by_itself(self):
        headers = self.installed_headers()
        self.assertIn("lib/verbs/open/open_device.h", headers)
        options = ["g++", "-std=c++17", "-fsyntax-only"] + WARNINGS + self.pkg_config("--cflags", "tokamak-verbs")

        def compiled(header):
            # Twice: it guards itself.
            source = f'#include "{header}"\n' * 2
            done = subprocess.run(options + ["-x", "c++", "-"], input=source, capture_output=True, text=True, timeout=300, cwd=self.folder, check=False)
            return done.stderr

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for header, said in zip(headers, pool.map(compiled, headers)):
                with self.subTest(header):
                    self.assertEqual(said, "")

    def test_backends_are_not_among_the_headers(self):
        inside = [header for header in self.installed_headers() if re.match(r"lib/verbs/(ibv|kernel|soft)/", header)]
        self.assertEqual(inside, [])

    def test_its_name_has_the_whole_version(self):
        soname = re.findall(r"\(SONAME\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", LIBRARY))
        self.assertEqual(soname, [f"libtokamak-rdma.so.{VERSION}"])
        self.assertEqual(self.pkg_config("--modversion", "tokamak-verbs"), [VERSION])

    def test_it_shows_the_namespaces_of_its_headers_alone(self):
        lines = run("nm", "--dynamic", "--defined-only", "--demangle", LIBRARY).splitlines()
        names = [line.split(" ", 2)[2] for line in lines]
        ours = r"(?:(?:vtable|typeinfo|typeinfo name|guard variable|VTT) for )?tokamak::(base|os|verbs)::(?!soft::|ibv::)|TOKAMAK_RDMA$"
        # What a template returns stands before its name.
        self.assertEqual([name for name in names if not re.search(ours, name)], [])

    def test_it_has_the_functions_of_its_headers(self):
        shown = run("nm", "--dynamic", "--defined-only", "--demangle", LIBRARY)
        for function in ("verbs::OpenDevice(", "verbs::Address::Parse(", "verbs::ToString(tokamak::verbs::ConnectionEvent::Kind)",
                         "verbs::ToString(tokamak::verbs::CompletionStatus)", "os::EpollLoop::Run()", "os::LoopThread::CallOn(",
                         "base::TimerQueue::Add("):
            self.assertIn("tokamak::" + function, shown)

    def test_the_patterns_are_built_from_it_and_run_between_two_processes(self):
        sources = os.path.join(self.folder, "sources/examples/patterns")
        shutil.copytree("examples/patterns", sources)
        program = os.path.join(self.folder, "run_patterns")
        run("g++", "-std=c++17", *WARNINGS, "-I" + os.path.join(self.folder, "sources"), os.path.join(sources, "run_patterns.cc"), "-o", program,
            *self.pkg_config("--cflags", "--libs", "tokamak-verbs", "libxxhash"), cwd=self.folder)
        for pattern, used, served in (("ring", "sent 1000 messages\n", "received 1000 messages, 1357500 bytes\n"),
                                      ("table", "read 200 values\n", ""),
                                      ("server", "learned: parameter 16 is 16\n", "served 40 steps\n")):
            with self.subTest(pattern), subprocess.Popen([program, pattern, "soft:udp@127.0.0.1"], stdout=subprocess.PIPE, text=True,
                                                         env=self.environment) as server:
                try:
                    service = server.stdout.readline().split()[1]
                    self.assertEqual(run(program, pattern, "soft:udp@127.0.0.2", service, env=self.environment), used)
                    if pattern == "table":  # its owner does not notice that it is read
                        server.send_signal(signal.SIGTERM)
                    self.assertEqual(server.communicate(timeout=60)[0], served)
                finally:
                    server.kill()


if __name__ == "__main__":
    unittest.main()
