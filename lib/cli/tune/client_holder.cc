#include "lib/cli/tune/client_holder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"

namespace tokamak::cli::tune {

absl::StatusOr<uint64_t> RoomOf(Client& client) {
  const auto stats = AsAbsl(client.NodeStats());
  if (!stats.ok()) return stats.status();
  uint64_t capacity = 0, used = 0, evictable = 0;
  for (const NodeNumber& number : stats->numbers) {
    if (number.name == "store_capacity_bytes") capacity = number.value;
    if (number.name == "store_used_bytes") used = number.value;
    if (number.name == "store_evictable_bytes") evictable = number.value;
  }
  return capacity - std::min(capacity, used) + std::min(used, evictable);
}

absl::Status ClientHolder::Make(absl::Span<const TestObject> objects) {
  for (const TestObject& object : objects) {
    while (bytes_.size() < object.size) bytes_.push_back(static_cast<uint8_t>(bytes_.size() * 7));
    PutOptions options;
    options.confirmed = true;
    options.timeout = {};  // waiting for room would spoil the measurement
    const absl::Status put =
        AsAbsl(client_.Put(object.id, absl::MakeConstSpan(bytes_).first(object.size), {}, options));
    if (put.ok()) continue;
    return absl::Status(put.code(), absl::StrCat("a test object of ", base::FormatSize(object.size), " on ",
                                                 client_.node(), ": ", put.message()));
  }
  return absl::OkStatus();
}

}  // namespace tokamak::cli::tune
