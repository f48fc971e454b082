// The choice of the entry of a port's GID table that we speak from, with reasons against the
// others: the ranking is a pure function of the table.
//
// InfiniBand has one GID that matters, the first. iWARP has none: its address is its net device's.
// RoCE has one for each IP address of its net device and each version of the protocol:
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

// The most entries of all ports of a device together; beyond it the kernel lists none. mlx5 has 256
// for each port.
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
  std::vector<GidVerdict> verdicts;  // in the table's order
  std::optional<size_t> chosen;      // index in verdicts

  const GidEntry* entry() const { return chosen ? &verdicts[*chosen].entry : nullptr; }

  // Returns a line for each entry: index, GID, type, net device, verdict.
  std::string ToString() const;
};

// The entry at `index`, if given, is taken in any case, unless it is empty or does not exist.
GidChoice ChooseGid(LinkKind link, absl::Span<const GidEntry> table, std::optional<uint32_t> index = std::nullopt);

// Checks an entry that was asked for by its index. kInvalidArgument: rdma_cm, which knows GIDs only
// by their IP address, would not speak from it.
absl::Status CheckForRdmaCm(LinkKind link, const GidEntry& entry);

// Returns the entry to go on with after `used`, since entries move and go as addresses of the net
// device do: the same GID, at any index, while it is usable; otherwise the best, or null. `index`:
// as above.
const GidEntry* ChooseAgain(LinkKind link, absl::Span<const GidEntry> table, const Gid& used,
                            std::optional<uint32_t> index = std::nullopt);

// Returns the present table, without empty entries. Errors: the provider's.
absl::StatusOr<std::vector<GidEntry>> ReadGidTable(ibv_context* context, uint8_t port);

}  // namespace tokamak::verbs::ibv
