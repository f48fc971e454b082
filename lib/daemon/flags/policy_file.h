// A policy as a file keeps it: the table, and what it was measured on. `tok tune` writes it, the
// daemon reads it, and people may.
//
//   {
//     "tokamak_policy": 1,
//     "table": [
//       {"up_to": 40960, "protocol": "eager"},
//       {"protocol": "read"}
//     ],
//     "measured": {"date": "2026-01-31T12:00:00Z", "puller": {...}, "holder": {...}, ...}
//   }
//
// "up_to" is in bytes, or a text as "40KiB"; the last step has none. "measured" is for people and
// may be missing: of it only the date and the ends are looked at. docs/tuning.md has every key.
// Text in, text out: who reads and writes files is the caller.
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

// Bytes; what `tok tune` writes has some 10 KB.
constexpr size_t kMaxPolicyFile = 1024 * 1024;

// Bytes of each text in it.
constexpr size_t kMaxPolicyText = 256;

struct LinkEnd {
  std::string node;
  std::string device;
};

struct PolicyMeasurement {
  std::string date;  // ISO 8601, UTC
  LinkEnd puller, holder;
  // Not read again.
  double seconds = 0;  // that it took
  std::vector<transport::SizeTimes> times;
  std::vector<transport::Crossover> crossovers;
};

struct PolicyFile {
  transport::Policy policy;
  std::optional<PolicyMeasurement> measured;
};

// kInvalidArgument says in one line what is wrong, and where.
absl::StatusOr<PolicyFile> ParsePolicyFile(absl::string_view text);

std::string FormatPolicyFile(const PolicyFile& file);

}  // namespace tokamak::daemon
