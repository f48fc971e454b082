// The choice of the entry of a port's GID table that we speak from, with reasons against the
// others: the ranking is a pure function of the table.
//
// InfiniBand: the first. iWARP: none; its address is its net device's. RoCE: one for each IP
// address of its net device and version of the protocol:
//
//   never            an empty entry, one beyond the first 256
//   only by index    RoCE v1 (no IP header: nothing routes it, rxe has none), a net device that is
//                    down or unknown
//   best to worst    IPv4, IPv6 global, IPv6 unique local, IPv6 link-local; then by the lower index
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// The most of a device's ports together; beyond it the kernel lists none. mlx5 has 256 for each.
constexpr size_t kMaxGids = 1024;

enum class GidType : uint8_t { kInfiniBand, kRoceV1, kRoceV2, kUnknown };
const char* ToString(GidType type);

struct GidEntry {
  uint32_t index = 0;
  Gid gid{};
  GidType type = GidType::kUnknown;
  std::string net_device;      // empty: none
  bool net_device_up = false;  // true if it is up and has a link
};

// Writes "::ffff:10.0.0.1" as 10.0.0.1.
std::string GidText(const Gid& gid);
bool IsEmpty(const Gid& gid);

struct GidVerdict {
  GidEntry entry;
  bool chosen = false;
  std::string reason;  // for or against it
};

struct GidChoice {
  std::vector<GidVerdict> verdicts;  // in the table's order
  std::optional<size_t> chosen;      // index of verdicts

  const GidEntry* entry() const { return chosen ? &verdicts[*chosen].entry : nullptr; }

  // Writes a line each: index, GID, type, net device, verdict.
  std::string ToString() const;
};

// `index` overrides, unless that entry is empty or does not exist.
GidChoice ChooseGid(LinkKind link, absl::Span<const GidEntry> table, std::optional<uint32_t> index = std::nullopt);

// kInvalidArgument: rdma_cm, which knows GIDs by their IP address alone, would not speak from this
// one, asked for by its index.
absl::Status CheckForRdmaCm(LinkKind link, const GidEntry& entry);

// Returns the entry to go on with, as `used` moves and goes with addresses: the same GID, at any
// index, while usable; else the best, or null. `index`: as above.
const GidEntry* ChooseAgain(LinkKind link, absl::Span<const GidEntry> table, const Gid& used,
                            std::optional<uint32_t> index = std::nullopt);

// Returns the present table, without empty entries. Errors: the provider's.
absl::StatusOr<std::vector<GidEntry>> ReadGidTable(ibv_context* context, uint8_t port);

}  // namespace tokamak::verbs::ibv
