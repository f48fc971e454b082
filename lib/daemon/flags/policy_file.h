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
// "up_to" is in bytes, or a text as "40KiB"; the last step has none. "measured" is for people and
// optional: only its date and ends are read. All keys: docs/tuning.md. The caller reads and writes
// the files.
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

// Bytes; `tok tune` writes some 10 KB.
constexpr size_t kMaxPolicyFile = 1024 * 1024;

// Bytes of each text.
constexpr size_t kMaxPolicyText = 256;

struct LinkEnd {
  std::string node;
  std::string device;
};

struct PolicyMeasurement {
  std::string date;  // ISO 8601, UTC
  LinkEnd puller, holder;
  // The rest is not read again.
  double seconds = 0;  // duration of the measurement
  std::vector<transport::SizeTimes> times;
  std::vector<transport::Crossover> crossovers;
};

struct PolicyFile {
  transport::Policy policy;
  std::optional<PolicyMeasurement> measured;
};

// kInvalidArgument: one line about what is wrong, and where.
absl::StatusOr<PolicyFile> ParsePolicyFile(absl::string_view text);

std::string FormatPolicyFile(const PolicyFile& file);

}  // namespace tokamak::daemon
