// The first byte of an AETH. (9.7.5, table 44)
#pragma once

#include <cstdint>

namespace tokamak::verbs::soft {

enum Syndrome : uint8_t {
  kAck = 0x1f,          // no end-to-end credits, which RoCE peers ignore
  kNotReadyNak = 0x20,  // | the code of the wait (time_codes.h)
  kSequenceNak = 0x60,
  kInvalidRequestNak = 0x61,
  kRemoteAccessNak = 0x62,
  kRemoteOperationNak = 0x63,
};

// Bits 6 and 5: the kind; bit 7: reserved.
inline bool IsAck(uint8_t syndrome) { return (syndrome & 0x60) == 0; }
inline bool IsNotReady(uint8_t syndrome) { return (syndrome & 0x60) == 0x20; }
inline uint8_t NotReadyCodeOf(uint8_t syndrome) { return syndrome & 0x1f; }

}  // namespace tokamak::verbs::soft
