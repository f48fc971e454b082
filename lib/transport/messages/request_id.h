// RequestId identifies a work request in its completion, even a failed one: the queue pair of the
// connection, send or receive, and the entry there.
#pragma once

#include <cstdint>

namespace tokamak::transport {

struct RequestId {
  uint8_t queue = 0;  // 0: messages; 1 and up: bulk
  bool receive = false;
  uint32_t entry = 0;

  constexpr uint64_t Pack() const { return uint64_t{receive} << 40 | uint64_t{queue} << 32 | entry; }
  static constexpr RequestId Unpack(uint64_t id) {
    return {static_cast<uint8_t>(id >> 32), (id >> 40 & 1) != 0, static_cast<uint32_t>(id)};
  }
};

}  // namespace tokamak::transport
