// The RDMA devices that tests of real loops and real processes run on, in one place: no such test
// names a backend.
//
//   TOKAMAK_TEST_DEVICES=ibv:rxe0,ibv:rxe1
//
// names them, and the nodes of a test take them in turn. Without it they are those of the lab,
// where a test runs in its guest (docs/softroce-lab.md); else, or where it is empty, node I has the
// software NIC soft:udp@127.0.0.I.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cli/cluster/places.h"

namespace tokamak::testing_support {

// As the environment says; empty for the software NIC.
std::vector<std::string> TestDevices();

// The place of node `index`, from 1. A device that cannot be opened ends the test program with its
// reason.
cli::NodePlace PlaceOfNode(int index);

// True where the tests run on the software NIC: what only that has, such as its numbers, may be
// asked for.
inline bool OnSoftwareNic() { return TestDevices().empty(); }

}  // namespace tokamak::testing_support
