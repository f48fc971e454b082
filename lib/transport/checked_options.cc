#include "lib/transport/checked_options.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/channels/control_channel.h"
#include "lib/transport/limits.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/message.h"

namespace tokamak::transport {
namespace {

constexpr uint32_t kMaxTransfersLimit = 65536;

struct Range {
  const char* name;
  uint64_t value;
  uint64_t least;
  uint64_t most;
};

absl::Status CheckDevice(const EndpointOptions& options, const verbs::Limits& limits) {
  const uint32_t bulk = BulkChannel::CompletionsFor(BulkQueue::Side::kPuller, options.bulk_queue_pairs);
  const uint32_t completions = ControlChannel::CompletionsFor(options) + bulk;
  const Range needs[] = {
      {"send requests", BulkQueue::kDepth, 1, limits.max_send_requests},
      {"receive requests", std::max(options.receive_slots, BulkQueue::kNotes), 1, limits.max_receive_requests},
      {"completions", completions, 1, limits.max_completions},
      {"bytes of private data", kHelloSize, 1, limits.max_private_data},
      {"READs at once", 1, 1, limits.max_reads},
  };
  for (const Range& need : needs) {
    if (need.value > need.most) {
      return absl::InvalidArgumentError(
          absl::StrCat("the device offers ", need.most, " ", need.name, ", the transport's options need ", need.value));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EndpointOptions> CheckOptions(const EndpointOptions& options, absl::Span<const Rail> rails) {
  const Range ranges[] = {
      {"receive_slots", options.receive_slots, kMinReceiveSlots, kMaxReceiveSlots},
      {"first_slots", options.first_slots, kMinFirstSlots, options.receive_slots},
      {"slot_size", options.slot_size, kMinSlotSize, kMaxSlotSize},
      {"rails", rails.size(), 1, kMaxRails},
      {"bulk_queue_pairs", options.bulk_queue_pairs, 1, kMaxBulkQueuePairs / std::max<size_t>(rails.size(), 1)},
      {"chunk_size", options.chunk_size, kMinChunkSize, kMaxChunkSize},
      {"chunks_in_flight", options.chunks_in_flight, 1, kMaxChunksInFlight},
      {"max_transfers", options.max_transfers, 1, kMaxTransfersLimit},
      {"reads_outstanding", options.reliability.reads_outstanding, 1, 255},
      {"reads_served", options.reliability.reads_served, 1, 255},
  };
  for (const Range& range : ranges) {
    if (range.value < range.least || range.value > range.most) {
      return absl::InvalidArgumentError(absl::StrCat("transport option ", range.name, " = ", range.value,
                                                     ", possible are ", range.least, " to ", range.most));
    }
  }
  if (options.security.secrets != nullptr && options.security.draw == nullptr) {
    return absl::InvalidArgumentError("transport option security: secrets without a source of random bytes");
  }
  EndpointOptions checked = options;
  for (const Rail& rail : rails) {
    const verbs::Limits& limits = rail.device.limits();
    if (absl::Status s = CheckDevice(options, limits); !s.ok()) return s;
    checked.measures_ack_timeout &= !limits.repeats_may_fail;
    checked.chunk_size = static_cast<uint32_t>(std::min<uint64_t>(checked.chunk_size, limits.max_message));
    const auto reads = static_cast<uint8_t>(std::min<uint32_t>(limits.max_reads, UINT8_MAX));
    checked.reliability.reads_outstanding = std::min(checked.reliability.reads_outstanding, reads);
    checked.reliability.reads_served = std::min(checked.reliability.reads_served, reads);
  }
  return checked;
}

}  // namespace tokamak::transport
