// Memory of an example that its peers may touch: bytes, the protection domain, the region.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/verbs.h"

namespace tokamak::example {

class Memory final {
 public:
  // All zero. `access` is what peers may do, for example verbs::kRemoteRead.
  static absl::StatusOr<std::unique_ptr<Memory>> Create(verbs::Device& device, uint64_t size, verbs::Access access) {
    std::unique_ptr<Memory> memory(new Memory(size));
    auto domain = device.CreateProtectionDomain();
    if (!domain.ok()) return domain.status();
    memory->domain_ = *std::move(domain);
    // To WRITE or READ into memory here takes the right to do so, too.
    auto region = memory->domain_->RegisterMemory(memory->bytes(), access | verbs::kLocalWrite);
    if (!region.ok()) return region.status();
    memory->region_ = *std::move(region);
    return memory;
  }

  absl::Span<uint8_t> bytes() { return absl::MakeSpan(bytes_); }
  verbs::ProtectionDomain& domain() { return *domain_; }
  verbs::MemoryRegion& region() { return *region_; }

 private:
  explicit Memory(uint64_t size) : bytes_(size) {}

  std::vector<uint8_t> bytes_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::MemoryRegion> region_;  // after the bytes: dropped before them
};

}  // namespace tokamak::example
