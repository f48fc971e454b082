// The choice of the entry of a port's GID table that we speak from, with reasons against the
// others: the ranking is a pure function of the table.
//
// InfiniBand has one GID that matters, the first. iWARP has none: its address is that of its net
// device. RoCE has one for each IP address of its net device, once for each version of the
// protocol:
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

// Entries that the ports of one device may have together; beyond it the kernel lists none. mlx5 has
// 256 for each port.
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

// Returns the usual text, with "::ffff:10.0.0.1" as 10.0.0.1.
std::string GidText(const Gid& gid);
bool IsEmpty(const Gid& gid);

struct GidVerdict {
  GidEntry entry;
  bool chosen = false;
  std::string reason;  // for or against it
};

struct GidChoice {
  std::vector<GidVerdict> verdicts;  // in the order of the table
  std::optional<size_t> chosen;      // of these

  const GidEntry* entry() const { return chosen ? &verdicts[*chosen].entry : nullptr; }

  // Returns one line for each entry: index, GID, type, net device, verdict.
  std::string ToString() const;
};

// `index` overrides: that entry is taken in any case, unless it is empty or does not exist.
GidChoice ChooseGid(LinkKind link, absl::Span<const GidEntry> table, std::optional<uint32_t> index = std::nullopt);

// Checks that rdma_cm, which knows GIDs by their IP address alone, would speak from `entry`, which
// was asked for by its index. kInvalidArgument: it takes another, or one that it finds out by
// itself.
absl::Status CheckForRdmaCm(LinkKind link, const GidEntry& entry);

// Returns the entry to go on with after `used`: entries move and go as addresses of the net device
// do. The same GID, at any index, while it may be used; else the best. Null: there is none.
// `index`: as above.
const GidEntry* ChooseAgain(LinkKind link, absl::Span<const GidEntry> table, const Gid& used,
                            std::optional<uint32_t> index = std::nullopt);

// Returns the port's present table, without empty entries. Errors: those of the provider.
absl::StatusOr<std::vector<GidEntry>> ReadGidTable(ibv_context* context, uint8_t port);

}  // namespace tokamak::verbs::ibv
