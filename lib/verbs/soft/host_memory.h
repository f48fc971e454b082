// HostMemory tells a NIC whether registered memory is still there: programs may unmap it.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tokamak::verbs::soft {

class HostMemory {
 public:
  // Return true if all of it may be read, or changed. `length`: not 0, at most a packet's payload
  // or an atomic's.
  virtual bool MayRead(const uint8_t* memory, size_t length) const = 0;
  virtual bool MayChange(uint8_t* memory, size_t length) const = 0;

  // Copies the NIC's `from`. Returns false if not all of `to` may be written.
  virtual bool Write(uint8_t* to, const uint8_t* from, size_t length) const = 0;

 protected:
  ~HostMemory() = default;
};

}  // namespace tokamak::verbs::soft
