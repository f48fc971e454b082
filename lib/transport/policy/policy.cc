#include "lib/transport/policy/policy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/check.h"
#include "lib/base/units.h"

namespace tokamak::transport {
namespace {

struct Unit {
  absl::string_view name;
  uint64_t bytes;
};
constexpr Unit kUnits[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}};

// An unknown device. Over UDP on loopback, with slots of 16 KiB, eager and read took the same time
// at 256 KiB, and eager half of it at 64 KiB, once. rdma_rxe and siw, not measured, have no
// windows, so write would register memory for each transfer.
constexpr uint64_t kEagerAtMost = 128 * 1024;

// Our software NIC, on loopback (docs/study): eager and write are within 5 % up to 48 KiB; from 256
// KiB on write is faster by 15 to 40 %, and read costs a round trip more. A node with small objects
// alone needs no bulk queue pairs.
constexpr uint64_t kSoftwareEagerAtMost = 16 * 1024;

// Hardware, not measured: computed with published figures for a ConnectX-6 (sim/costs/presets.json,
// docs/simulation.md, "Where is the threshold?"). A single read overtakes eager just above 15 KiB.
// A single write would save read's round trip, 4 us; with sixteen at once it falls behind read at
// 16 KiB, and without windows always.
constexpr uint64_t kHardwareEagerAtMost = 15 * 1024;

// Exact, so that it parses to the same size.
std::string SizeToString(uint64_t size) {
  for (const Unit& u : kUnits) {
    if (size >= u.bytes && size % u.bytes == 0) return absl::StrCat(size / u.bytes, u.name);
  }
  return absl::StrCat(size);
}

}  // namespace

absl::StatusOr<Protocol> ParseProtocol(absl::string_view text) {
  for (Protocol p : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    if (text == ToString(p)) return p;
  }
  return absl::InvalidArgumentError(absl::StrCat("no protocol: '", text, "' (eager, read, write)"));
}

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

Policy Policy::BuiltIn(DeviceKind kind) {
  Policy policy;
  if (kind == DeviceKind::kSoftware) {
    policy.steps_ = {{kSoftwareEagerAtMost, Protocol::kEager}, {UINT64_MAX, Protocol::kWrite}};
  }
  if (kind == DeviceKind::kHardware) {
    policy.steps_ = {{kHardwareEagerAtMost, Protocol::kEager}, {UINT64_MAX, Protocol::kRead}};
  }
  return policy;
}

absl::StatusOr<Policy> Policy::FromSteps(std::vector<Step> steps) {
  if (steps.empty()) return absl::InvalidArgumentError("a policy without steps");
  if (steps.size() > kMaxPolicySteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("a policy of ", steps.size(), " steps, possible are ", kMaxPolicySteps));
  }
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
  CHECK(false) << "the last step reaches every size";
  return Protocol::kRead;
}

}  // namespace tokamak::transport
