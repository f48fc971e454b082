// Addresses of a node's page for those who look at another node's page.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "lib/base/text/host_port.h"
#include "lib/verbs/types.h"

namespace tokamak::daemon {

// Returns the address that a node with its page at `http` and an engine at `engine` gives to
// others: a page at every address of the machine is at the engine's as well.
std::string PageForOthers(const base::HostPort& http, const verbs::Address& engine);

// A node's addresses, as it reports them; `page` empty: none.
struct PagePlace {
  absl::string_view page;
  absl::string_view engine;
};

// Returns the link from the page of `own` to that of `other`; empty: not reachable from there. A
// loopback address means another page on each machine.
std::string LinkToPage(const PagePlace& other, const PagePlace& own);

}  // namespace tokamak::daemon
