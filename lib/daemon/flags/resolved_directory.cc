#include "lib/daemon/flags/resolved_directory.h"

#include <utility>

#include "lib/base/log.h"
#include "lib/verbs/types.h"

namespace tokamak::daemon {
namespace {

// Interval of checks, and delay after a failed look-up.
constexpr base::Duration kLookEvery = base::Seconds(1);

}  // namespace

ResolvedDirectory::ResolvedDirectory(base::EventLoop& loop, node::Engine& engine, const base::HostPort& server,
                                     base::Random random)
    : loop_(loop),
      server_(server),
      random_(random.Fork(1)),
      asked_(loop, engine, verbs::Address(), random),
      names_(loop) {
  lookup_ = names_.Lookup(server_.host, [this](const auto& addresses) { Found(addresses); });
}

void ResolvedDirectory::LookLater(base::Duration after) {
  // Spreads the nodes' look-ups.
  const auto drawn = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(after.picoseconds() / 2)));
  look_ = loop_.RunAfter(after - base::Duration::Picoseconds(drawn), [this] { Look(); });
}

void ResolvedDirectory::Look() {
  if (!asked_.unanswered()) return LookLater(kLookEvery);
  lookup_ = names_.Lookup(server_.host, [this](const auto& addresses) { Found(addresses); });
}

void ResolvedDirectory::Found(const absl::StatusOr<os::NameLookup::Addresses>& addresses) {
  LookLater(kLookEvery);
  const std::string trouble(addresses.status().message());
  if (trouble != std::exchange(trouble_, trouble) && !trouble.empty()) {
    LOG(WARNING) << "directory at " << server_.ToString() << ": " << trouble
                 << "; correct the host's name in --directory, or its entry in DNS or /etc/hosts";
  }
  if (!addresses.ok()) return;
  absl::StatusOr<verbs::Address> address = verbs::Address::Parse((*addresses)[turn_++ % addresses->size()]);
  if (!address.ok()) return;  // unknown to verbs; the next turn has another
  address->port = server_.port;
  asked_.MoveTo(*address);
}

}  // namespace tokamak::daemon
