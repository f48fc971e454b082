#include "lib/daemon/watch/page_address.h"

#include "absl/strings/str_cat.h"

namespace tokamak::daemon {

std::string PageForOthers(const base::HostPort& http, const verbs::Address& engine) {
  const auto address = verbs::Address::Parse(http.ToString());
  if (!address.ok() || !address->is_unspecified()) return http.ToString();
  verbs::Address at = engine;
  at.port = http.port;
  at.udp_port = 0;
  return at.ToString();
}

std::string LinkToPage(const PagePlace& other, const PagePlace& own) {
  const auto page = verbs::Address::Parse(other.page);
  if (!page.ok() || page->port == 0) return "";
  if (page->is_loopback()) {
    const auto own_page = verbs::Address::Parse(own.page);
    const auto engine = verbs::Address::Parse(other.engine), own_engine = verbs::Address::Parse(own.engine);
    if (!own_page.ok() || !engine.ok() || !own_engine.ok()) return "";
    const bool same_machine = engine->ip == own_engine->ip || engine->is_loopback();
    if (!own_page->is_loopback() || !same_machine) return "";
  }
  return absl::StrCat("http://", page->ToString(), "/");
}

}  // namespace tokamak::daemon
