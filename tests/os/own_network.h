// A network of a test's own: a new network namespace, whose loopback is up and where the test may
// do what needs root elsewhere (raw sockets, addresses, virtual cables). The kernel removes it when
// the last thread in it ends.
//
// Root may always make one; others where the system allows user namespaces, before they have
// started a thread.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace tokamak::tests {

// Moves the calling thread, and threads that it starts from now on, into a new network.
// kUnavailable where this process may not: a test says so and skips.
absl::Status EnterOwnNetwork();

// Gives the loopback interface of this thread's network another IPv6 address.
absl::Status AddLoopbackIpv6(const std::string& ip);

}  // namespace tokamak::tests
