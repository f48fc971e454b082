#include "lib/verbs/kernel/program/ring_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace tokamak::verbs::kernel {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kBeforeName = sizeof("/memfd:") - 1;

}  // namespace

std::unique_ptr<RingMemory> RingMemory::Make() {
  os::FileDescriptor file(memfd_create(kRingMapping + kBeforeName, MFD_CLOEXEC));
  if (!file.valid()) return nullptr;
  return std::unique_ptr<RingMemory>(new RingMemory(std::move(file)));
}

RingMemory::RingMemory(os::FileDescriptor file) : file_(std::make_shared<os::FileDescriptor>(std::move(file))) {}

std::unique_ptr<RingMemory::Block> RingMemory::Allocate(size_t size) {
  const size_t whole = (size + kPage - 1) & ~(kPage - 1);
  if (whole > UINT32_MAX) return nullptr;
  const uint64_t offset = used_;
  if (ftruncate(file_->get(), static_cast<off_t>(offset + whole)) != 0) return nullptr;
  void* const address =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file_->get(), static_cast<off_t>(offset));
  if (address == MAP_FAILED) return nullptr;
  used_ += whole;
  mminfo place{};
  place.offset = offset;
  place.size = static_cast<uint32_t>(whole);
  return std::unique_ptr<Block>(new Block(file_, address, place));
}

int RingMemory::Duplicate() const { return fcntl(file_->get(), F_DUPFD_CLOEXEC, 0); }

RingMemory::Block::Block(std::shared_ptr<os::FileDescriptor> file, void* address, const mminfo& place)
    : file_(std::move(file)), address_(address), place_(place) {}

RingMemory::Block::~Block() {
  munmap(address_, place_.size);
  fallocate(file_->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place_.offset), place_.size);
}

}  // namespace tokamak::verbs::kernel
