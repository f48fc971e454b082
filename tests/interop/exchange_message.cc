#include "tests/interop/exchange_message.h"

#include <algorithm>

#include "lib/base/bytes.h"

namespace tokamak::interop {
namespace {

constexpr uint32_t kMagic = 0x58494b54;  // "TKIX"

}  // namespace

MessageBytes Encode(const Message& message) {
  MessageBytes bytes{};
  uint8_t* const p = bytes.data();
  base::StoreLittle<uint32_t>(p, kMagic);
  p[4] = static_cast<uint8_t>(message.kind);
  p[5] = message.flags;
  base::StoreLittle<uint32_t>(p + 8, message.length);
  base::StoreLittle<uint32_t>(p + 12, message.count);
  base::StoreLittle<uint64_t>(p + 16, message.seed);
  base::StoreLittle<uint64_t>(p + 24, message.address);
  base::StoreLittle<uint32_t>(p + 32, message.rkey);
  base::StoreLittle<uint32_t>(p + 36, static_cast<uint32_t>(message.result));
  base::StoreLittle<uint64_t>(p + 40, message.value);
  base::StoreLittle<uint64_t>(p + 48, message.window);
  return bytes;
}

absl::StatusOr<Message> Decode(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != kMessageBytes) return absl::InvalidArgumentError("a message of another size");
  const uint8_t* const p = bytes.data();
  const uint32_t result = base::LoadLittle<uint32_t>(p + 36);
  if (base::LoadLittle<uint32_t>(p) != kMagic || p[4] > kLastKind || (p[5] & ~kAllFlags) != 0 || result > kLastResult) {
    return absl::InvalidArgumentError("a message that is none of this program's");
  }
  Message message;
  message.kind = static_cast<MessageKind>(p[4]);
  message.flags = p[5];
  message.length = base::LoadLittle<uint32_t>(p + 8);
  message.count = base::LoadLittle<uint32_t>(p + 12);
  message.seed = base::LoadLittle<uint64_t>(p + 16);
  message.address = base::LoadLittle<uint64_t>(p + 24);
  message.rkey = base::LoadLittle<uint32_t>(p + 32);
  message.result = static_cast<MessageResult>(result);
  message.value = base::LoadLittle<uint64_t>(p + 40);
  message.window = base::LoadLittle<uint64_t>(p + 48);
  const MessageBytes again = Encode(message);
  if (!std::equal(again.begin(), again.end(), p))
    return absl::InvalidArgumentError("bytes that should be zero are not");
  return message;
}

}  // namespace tokamak::interop
