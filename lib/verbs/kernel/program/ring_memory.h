// RingMemory is the memory that one opened device shares with its program: a memfd. The program's
// descriptor of the device is one of it, so the provider's mmap() of the device is an ordinary one.
//
// Thread rule: one lock's. Blocks may outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/os/file_descriptor.h"
#include "lib/verbs/kernel/program/rxe_abi.h"

namespace tokamak::verbs::kernel {

// Name prefix of its mappings in /proc/PID/maps.
constexpr char kRingMapping[] = "/memfd:tokamak-uverbs";

class RingMemory final {
 public:
  class Block final {
   public:
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    void* address() const { return address_; }
    const mminfo& place() const { return place_; }

   private:
    friend class RingMemory;
    Block(std::shared_ptr<os::FileDescriptor> file, void* address, const mminfo& place);

    const std::shared_ptr<os::FileDescriptor> file_;
    void* const address_;
    const mminfo place_;
  };

  // Null without memory or a descriptor.
  static std::unique_ptr<RingMemory> Make();

  // Returns zeros, page-aligned; null without memory. A dropped block's memory is freed, but its
  // place is not used again.
  std::unique_ptr<Block> Allocate(size_t size);

  // Returns another descriptor of the memory, closed on exec; -1 if the process can have no more.
  int Duplicate() const;

 private:
  explicit RingMemory(os::FileDescriptor file);

  const std::shared_ptr<os::FileDescriptor> file_;
  uint64_t used_ = 0;  // bytes of the file
};

}  // namespace tokamak::verbs::kernel
