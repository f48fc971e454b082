// PolicyFile is a policy as text: the table, and its measurement. `tok tune` writes it; the daemon,
// and people, read it.
//
//  {
//    "tokamak_policy": 1,
//    "table": [
//      {"up_to": 40960, "protocol": "eager"},
//      {"protocol": "read"}
//    ],
//    "measured": {"date": "2026-01-31T12:00:00Z", "puller": {...}, "holder": {...}, ...}
//  }
//
// "up_to": bytes, or "40KiB"; not in the last step. "measured" is optional: only its date and ends
// are read. All keys: docs/tuning.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/transport/policy/policy.h"
#include "lib/transport/policy/policy_fit.h"

namespace tokamak::daemon {

// Bytes; usual: 10 KB.
constexpr size_t kMaxPolicyFile = 1024 * 1024;

// Bytes.
constexpr size_t kMaxPolicyText = 256;

struct LinkEnd {
  std::string node;
  std::string device;
};

struct PolicyMeasurement {
  std::string date;  // ISO 8601, UTC
  LinkEnd puller, holder;
  double seconds = 0;  // of the measurement
  std::vector<transport::SizeTimes> times;
  std::vector<transport::Crossover> crossovers;
};

struct PolicyFile {
  transport::Policy policy;
  std::optional<PolicyMeasurement> measured;
};

// kInvalidArgument: one line, with the place.
absl::StatusOr<PolicyFile> ParsePolicyFile(absl::string_view text);

std::string FormatPolicyFile(const PolicyFile& file);

}  // namespace tokamak::daemon
