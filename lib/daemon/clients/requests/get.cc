#include "lib/daemon/clients/requests/get.h"

#include "lib/daemon/clients/wire.h"

namespace tokamak::daemon {

namespace {

// Pulls have the lower numbers.
constexpr uint64_t kGetActivities = uint64_t{1} << 63;

}  // namespace

PendingGet::~PendingGet() {
  if (activity_ != 0) Record(base::Phase::kOver);
}

void PendingGet::Start(const client::GetRequest& request) {
  if (asker().context().trace != nullptr) {
    activity_ = kGetActivities | ++asker().context().gets_traced;
    Record(base::Phase::kSession);
  }
  node::GetOptions options;
  options.timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  options.protocol = static_cast<transport::Protocol>(request.protocol);
  get_ = asker().node().Get(request.ids, options, asker().owner(),
                            [this](absl::Span<const node::GetResult> results) { Got(results); });
}

void PendingGet::Got(absl::Span<const node::GetResult> results) {
  client::GetReply reply;
  for (const node::GetResult& result : results) {
    client::GetEntry& entry = reply.entries.emplace_back();
    entry.outcome = client::Outcome::Of(result.status);
    if (result.location.has_value()) entry.location = ToWire(*result.location);
  }
  EndWith(reply);
}

void PendingGet::Record(base::Phase phase) const {
  asker().context().trace->Record(
      {asker().loop().Now(), base::TraceKind::kPhase, 0, static_cast<uint32_t>(phase), 0, activity_});
}

}  // namespace tokamak::daemon
