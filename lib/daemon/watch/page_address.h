// Addresses of a node's page for those who look at another node's page.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "lib/base/text/host_port.h"
#include "lib/verbs/types.h"

namespace tokamak::daemon {

// Returns the page's address for others; for a page at every address of the machine the engine's.
std::string PageForOthers(const base::HostPort& http, const verbs::Address& engine);

// As a node reports them; `page` empty: none.
struct PagePlace {
  absl::string_view page;
  absl::string_view engine;
};

// Returns the link from the page of `own`; empty: unreachable. Loopback addresses differ by
// machine.
std::string LinkToPage(const PagePlace& other, const PagePlace& own);

}  // namespace tokamak::daemon
