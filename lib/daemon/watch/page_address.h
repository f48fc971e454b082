// Where the page of a node is for those who look at the page of another.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "lib/base/text/host_port.h"
#include "lib/verbs/types.h"

namespace tokamak::daemon {

// What a node whose page is at `http` and whose engine listens at `engine` says of it to others: a
// page at every address of the machine is at the engine's as well.
std::string PageForOthers(const base::HostPort& http, const verbs::Address& engine);

// As a node says of itself: addresses as text, the page's empty where there is none.
struct PagePlace {
  absl::string_view page;
  absl::string_view engine;
};

// The link to the page of `other` for whoever looks at that of `own`; empty: it cannot be reached
// from there. A page at a loopback address is another one on each machine.
std::string LinkToPage(const PagePlace& other, const PagePlace& own);

}  // namespace tokamak::daemon
