"""Logic that includes what it must not is found, and nothing else is."""

import unittest

from ci import check_includes


class CheckIncludesTest(unittest.TestCase):
    def test_finds_threads_clocks_randomness_and_system_calls(self):
        for header in ("thread", "chrono", "random", "mutex", "lib/base/mutex.h", "unistd.h", "sys/mman.h", "time.h", "infiniband/verbs.h"):
            with self.subTest(header):
                self.assertEqual(check_includes.wrong_includes("lib/store/store.cc", f"#include <{header}>\n"), [header])

    def test_finds_them_behind_quotes_spaces_and_other_lines(self):
        text = '#include <vector>\n  #  include "absl/time/clock.h"\n#include <thread>  // why not\n'
        self.assertEqual(check_includes.wrong_includes("lib/node/node.h", text), ["absl/time/clock.h", "thread"])

    def test_leaves_containers_abseil_and_our_own_headers_alone(self):
        text = '#include <vector>\n#include "absl/status/status.h"\n#include "lib/base/time.h"\n'
        self.assertEqual(check_includes.wrong_includes("lib/transport/channels/credits.cc", text), [])

    def test_only_the_software_nic_has_a_lock(self):
        text = '#include "lib/base/mutex.h"\n'
        self.assertEqual(check_includes.wrong_includes("lib/verbs/soft/state/nic_mutex.h", text), [])
        self.assertEqual(check_includes.wrong_includes("lib/verbs/verbs.h", text), ["lib/base/mutex.h"])

    def test_locks_are_those_that_clang_checks(self):
        text = "#include <condition_variable>\n#include <mutex>\n"
        for path in ("lib/client/line.cc", "lib/os/loop_thread.h", "sim/network/loopback_fabric.cc"):
            self.assertEqual(check_includes.lock_includes(path, text), ["condition_variable", "mutex"], path)
        for path in ("lib/base/mutex.h", "lib/verbs/kernel/program/program_pages.cc", "tests/os/loop_thread_test.cc"):
            self.assertEqual(check_includes.lock_includes(path, text), [], path)

    def test_only_the_ns3_module_includes_ns3(self):
        text = '#include "ns3/simulator.h"\n#include "sim/ns3/ns3_loop.h"\n#include "sim/time/sim_loop.h"\n'
        for path in ("lib/cli/main.cc", "sim/worlds/world.cc", "sim/fabric/link/link.cc", "tests/sim/world_test.cc"):
            self.assertEqual(check_includes.ns3_includes(path, text), ["ns3/simulator.h", "sim/ns3/ns3_loop.h"], path)
        for path in ("sim/ns3/ns3_loop.cc", "tests/sim/ns3/ns3_loop_test.cc"):
            self.assertEqual(check_includes.ns3_includes(path, text), [], path)

    def test_programs_include_the_public_headers_of_the_client_alone(self):
        text = '#include "lib/client/daemon_connection.h"\n#include "tokamak/client.h"\n'
        for path in ("examples/put_and_get.cc", "lib/cli/objects/files.h", "lib/node/node.cc", "sim/worlds/world.cc", "tests/bench/get.cc"):
            self.assertEqual(check_includes.client_includes(path, text), ["lib/client/daemon_connection.h"], path)
        for path in ("lib/client/gets.cc", "lib/daemon/clients/session.h", "tests/client/gets_test.cc"):
            self.assertEqual(check_includes.client_includes(path, text), [], path)

    def test_public_headers_stand_by_themselves(self):
        text = '#include <stdint.h>\n#include <vector>\n#include "tokamak/span.h"\n#include <absl/types/span.h>\n#include <unistd.h>\n'
        self.assertEqual(check_includes.public_includes("include/tokamak/client.h", text), ["absl/types/span.h", "unistd.h"])
        self.assertEqual(check_includes.public_includes("lib/client/client.cc", text), [])

    def test_knows_logic_from_what_talks_to_the_system(self):
        for path in ("lib/base/random.cc", "lib/verbs/verbs.h", "lib/verbs/soft/rc/requester.cc", "lib/directory/local.h", "lib/new/x.h"):
            self.assertTrue(check_includes.is_logic(path), path)
        for path in ("lib/os/epoll_loop.cc", "lib/verbs/soft/udp/udp_fabric.cc", "lib/client/client.h", "tests/base/x.cc", "lib/base/BUILD"):
            self.assertFalse(check_includes.is_logic(path), path)


if __name__ == "__main__":
    unittest.main()
