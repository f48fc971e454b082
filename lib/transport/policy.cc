#include "lib/transport/policy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "lib/base/units.h"

namespace tokamak::transport {
namespace {

struct Unit {
  absl::string_view name;
  uint64_t bytes;
};
constexpr Unit kUnits[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}};

// Over UDP on loopback, with slots of 16 KiB, eager and read took the same time at 256 KiB and
// eager half of it at 64 KiB. Write was the fastest for large objects there; but it registers
// memory for each transfer, which costs a hardware device more than it gains, so a link has to be
// measured before it is chosen.
constexpr uint64_t kEagerAtMost = 128 * 1024;

// Exact, so that what is written is what is read again.
std::string SizeToString(uint64_t size) {
  for (const Unit& u : kUnits) {
    if (size >= u.bytes && size % u.bytes == 0) return absl::StrCat(size / u.bytes, u.name);
  }
  return absl::StrCat(size);
}

absl::StatusOr<Protocol> ParseProtocol(absl::string_view text) {
  for (Protocol p : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    if (text == ToString(p)) return p;
  }
  return absl::InvalidArgumentError(absl::StrCat("no protocol: '", text, "' (eager, read, write)"));
}

}  // namespace

const char* ToString(Protocol protocol) {
  switch (protocol) {
    case Protocol::kAuto:
      return "auto";
    case Protocol::kEager:
      return "eager";
    case Protocol::kRead:
      return "read";
    case Protocol::kWrite:
      return "write";
  }
  return "?";
}

Policy::Policy() : steps_({{kEagerAtMost, Protocol::kEager}, {UINT64_MAX, Protocol::kRead}}) {}

absl::StatusOr<Policy> Policy::FromSteps(std::vector<Step> steps) {
  if (steps.empty()) return absl::InvalidArgumentError("a policy without steps");
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].protocol == Protocol::kAuto) {
      return absl::InvalidArgumentError(absl::StrCat("step ", i + 1, " of the policy names no protocol"));
    }
    if (i > 0 && steps[i].size_at_most <= steps[i - 1].size_at_most) {
      return absl::InvalidArgumentError(absl::StrCat("step ", i + 1, " of the policy ends at ", steps[i].size_at_most,
                                                     ", the one before at ", steps[i - 1].size_at_most));
    }
  }
  if (steps.back().size_at_most != UINT64_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("the policy says nothing of sizes above ", steps.back().size_at_most));
  }
  Policy policy;
  policy.steps_ = std::move(steps);
  return policy;
}

absl::StatusOr<Policy> Policy::Parse(absl::string_view text) {
  std::vector<Step> steps;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(part, absl::MaxSplits(':', 1));
    auto protocol = ParseProtocol(halves.first);
    if (!protocol.ok()) return protocol.status();
    uint64_t size = UINT64_MAX;
    if (part.size() > halves.first.size()) {
      auto parsed = base::ParseSize(halves.second);
      if (!parsed.ok()) return parsed.status();
      size = *parsed;
    }
    steps.push_back({size, *protocol});
  }
  return FromSteps(std::move(steps));
}

std::string Policy::ToString() const {
  return absl::StrJoin(steps_, ",", [](std::string* out, const Step& step) {
    absl::StrAppend(out, transport::ToString(step.protocol));
    if (step.size_at_most != UINT64_MAX) absl::StrAppend(out, ":", SizeToString(step.size_at_most));
  });
}

Protocol Policy::Choose(uint64_t size) const {
  for (const Step& step : steps_) {
    if (size <= step.size_at_most) return step.protocol;
  }
  LOG(FATAL) << "the last step reaches every size";
  return Protocol::kRead;
}

}  // namespace tokamak::transport
