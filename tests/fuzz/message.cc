// The transport's messages and hellos: what Decode takes is, byte for byte, what Encode writes.
#include "lib/transport/messages/message.h"

#include <vector>

#include "lib/base/check.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/rail_messages.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace transport;  // NOLINT: its whole wire is the subject

void TryRails(absl::Span<const uint8_t> body) {
  const std::vector<uint8_t> bytes(body.begin(), body.end());
  const auto rails = DecodeRails(bytes);
  if (rails.ok()) CHECK(EncodeRails(*rails) == bytes);
}

void TryWanted(absl::Span<const uint8_t> body) {
  const std::vector<uint8_t> bytes(body.begin(), body.end());
  const auto wanted = DecodeWanted(bytes);
  if (wanted.ok()) CHECK(EncodeWanted(*wanted) == bytes);
}

void TryMessage(absl::Span<const uint8_t> given) {
  const std::vector<uint8_t> bytes(given.begin(), given.end());  // of its exact size: a step beyond it is seen
  const absl::StatusOr<Message> message = DecodeMessage(bytes);
  if (!message.ok()) return;
  CHECK_NE(ToString(message->header.kind)[0], '?');
  CHECK_LE(message->header.size.data, kMaxObjectSize);
  CHECK_LE(message->header.size.metadata, kMaxObjectSize);
  std::vector<uint8_t> again(MessageSize(message->header, message->body.size()));
  CHECK_EQ(EncodeMessage(message->header, message->body, absl::MakeSpan(again)), again.size());
  CHECK(again == bytes) << ToString(message->header.kind);
  CHECK_LE(message->header.remote.further.count, kMaxRails - 1);
  if (message->header.kind == MessageKind::kRails) TryRails(message->body);
  if (message->header.kind == MessageKind::kRailDown) TryWanted(message->body);
}

void TryHello(absl::Span<const uint8_t> given) {
  const std::vector<uint8_t> bytes(given.begin(), given.end());
  const absl::StatusOr<Hello> hello = DecodeHello(bytes);
  if (!hello.ok()) return;
  CHECK(IsHello(bytes));
  CHECK(hello->queue <= hello->bulk_queue_pairs * hello->rails);
  CHECK_LE(uint32_t{hello->bulk_queue_pairs} * hello->rails, kMaxBulkQueuePairs);
  CHECK(hello->primary < hello->rails && hello->rails <= kMaxRails);
  CHECK(hello->slot_size >= kMinSlotSize && hello->slot_size <= kMaxSlotSize);
  CHECK(hello->receive_slots >= kMinReceiveSlots && hello->receive_slots <= kMaxReceiveSlots);
  CHECK(hello->first_slots >= kMinFirstSlots && hello->first_slots <= hello->receive_slots);
  std::vector<uint8_t> first(kHelloSize), second(kHelloSize);
  EncodeHello(*hello, absl::MakeSpan(first));
  const absl::StatusOr<Hello> again = DecodeHello(first);
  CHECK(again.ok()) << again.status();
  EncodeHello(*again, absl::MakeSpan(second));
  CHECK(first == second);
}

void TryNote(uint32_t value) {
  const Note note = Note::Unpack(value);
  CHECK_EQ(note.Pack(), value);
  CHECK_LE(note.number, Note::kNumberMask);
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Input input(data, size);
  switch (input.Below(4)) {
    case 0:
      tokamak::fuzz::TryHello(input.Rest());
      break;
    case 1:
      tokamak::fuzz::TryNote(input.Take<uint32_t>());
      break;
    default:
      tokamak::fuzz::TryMessage(input.Rest());
  }
  return 0;
}
