// HostMemory is what a NIC asks before it touches memory of its host, where that may be gone while
// it is registered: below programs that own it, and that nobody keeps from unmapping it. A NIC
// without one takes what is registered for there.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tokamak::verbs::soft {

class HostMemory {
 public:
  // Whether all of it may be read, or changed. `length` is not 0; at most a packet's payload, or an
  // atomic's.
  virtual bool MayRead(const uint8_t* memory, size_t length) const = 0;
  virtual bool MayChange(uint8_t* memory, size_t length) const = 0;

  // Copies `from`, which is the NIC's own, to where it may. False: not all of it may be written.
  virtual bool Write(uint8_t* to, const uint8_t* from, size_t length) const = 0;

 protected:
  ~HostMemory() = default;
};

}  // namespace tokamak::verbs::soft
