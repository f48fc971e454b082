#include "lib/verbs/kernel/program/command.h"

#include <rdma/ib_user_verbs.h>

#include <array>

namespace tokamak::verbs::kernel {

int Command::Decode(const void* buffer, size_t size, Command* command) {
  *command = Command();
  ib_uverbs_cmd_hdr header;
  if (size < sizeof(header)) return EINVAL;
  std::memcpy(&header, buffer, sizeof(header));
  constexpr uint32_t kKnownBits = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK;
  if ((header.command & ~kKnownBits) != 0) return EINVAL;
  command->number_ = header.command & IB_USER_VERBS_CMD_COMMAND_MASK;
  command->extended_ = (header.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0;
  const auto rest = absl::MakeConstSpan(static_cast<const uint8_t*>(buffer), size).subspan(sizeof(header));
  if (command->extended_) return command->DecodeExtended(rest, header.in_words, header.out_words);

  if (header.in_words * size_t{4} != size) return EINVAL;
  command->request_ = rest;
  command->room_ = header.out_words * size_t{4};
  if (command->room_ == 0) return 0;
  if (rest.size() < sizeof(command->response_)) return EINVAL;
  std::memcpy(&command->response_, rest.data(), sizeof(command->response_));
  return 0;
}

// Words of an extended command have 8 bytes.
int Command::DecodeExtended(absl::Span<const uint8_t> rest, size_t in_words, size_t out_words) {
  ib_uverbs_ex_cmd_hdr header;
  if (rest.size() < sizeof(header)) return EINVAL;
  std::memcpy(&header, rest.data(), sizeof(header));
  if (header.cmd_hdr_reserved != 0) return EINVAL;
  rest = rest.subspan(sizeof(header));
  if ((in_words + header.provider_in_words) * 8 != rest.size()) return EINVAL;
  if (header.response == 0 && (out_words != 0 || header.provider_out_words != 0)) return EINVAL;
  if (header.response != 0 && out_words == 0 && header.provider_out_words == 0) return EINVAL;
  request_ = rest.first(in_words * 8);
  driver_ = rest.subspan(in_words * 8);
  response_ = header.response;
  room_ = out_words * 8;
  driver_room_ = header.provider_out_words * size_t{8};
  return 0;
}

int Command::PutBytes(const void* response, size_t size) const {
  if (!extended_ && room_ < size) return ENOSPC;
  const size_t taken = std::min(room_, size);
  if (const int error = CopyToProgram(response_, response, taken)) return error;
  static constexpr std::array<uint8_t, 256> kZeros{};
  const size_t behind = extended_ ? std::min(room_ - taken, kZeros.size()) : 0;
  return CopyToProgram(response_ + taken, kZeros.data(), behind);
}

int Command::PutBytes(const void* response, size_t size, const void* driver, size_t driver_size) const {
  const size_t room = extended_ ? driver_room_ : room_ - std::min(room_, size);
  if (room < driver_size) return EINVAL;
  if (const int error = PutBytes(response, size)) return error;
  return CopyToProgram(response_ + (extended_ ? room_ : size), driver, driver_size);
}

}  // namespace tokamak::verbs::kernel
