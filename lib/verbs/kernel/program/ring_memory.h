// RingMemory is the memory that one opened device shares with its program: a memfd. The program's
// descriptor of the device is a descriptor of it, so the provider's mmap() of the device is an
// ordinary one.
//
// Thread rule: one lock's. Blocks may outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/os/file_descriptor.h"
#include "lib/verbs/kernel/program/rxe_abi.h"

namespace tokamak::verbs::kernel {

// What mappings of it are called in /proc/PID/maps begins with this.
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

  // Null where there is no memory, or no descriptor.
  static std::unique_ptr<RingMemory> Make();

  // Zeros, page-aligned. Null without memory. Where a block was is not used again; what it held is
  // given back.
  std::unique_ptr<Block> Allocate(size_t size);

  // Another descriptor of the memory, closed on exec; -1 without one.
  int Duplicate() const;

 private:
  explicit RingMemory(os::FileDescriptor file);

  const std::shared_ptr<os::FileDescriptor> file_;
  uint64_t used_ = 0;  // bytes of the file
};

}  // namespace tokamak::verbs::kernel
