// Registration says how the memory of objects becomes known to the device: strategies behind one interface, to be compared.
//
//   arena      the whole store once, for REMOTE_READ only: nothing is registered on the data path (default)
//   on_demand  each transfer registers its own memory and deregisters it after, as in the original study
//
// The target of a peer's WRITE never rides on the arena's key: it gets a region of exactly its range, revoked before seal.
// Thread rule: any thread, as ProtectionDomain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

// Keys for a range of memory while it lives. Dropping a lease that owns a region of its own revokes its keys at once.
class Lease {
 public:
  virtual ~Lease() = default;
  virtual uint32_t lkey() const = 0;
  virtual uint32_t rkey() const = 0;
};

class Registration {
 public:
  enum class Use {
    kReadSource,   // a peer READs it, or we SEND or WRITE from it
    kReadTarget,   // we READ into it
    kWriteTarget,  // a peer WRITEs into it: always a key of its own
  };

  virtual ~Registration() = default;
  virtual absl::StatusOr<std::unique_ptr<Lease>> Acquire(absl::Span<uint8_t> memory, Use use) = 0;
};

// `arena` must stay mapped, `domain` alive, while the registration lives.
absl::StatusOr<std::unique_ptr<Registration>> RegisterArena(verbs::Device& device, verbs::ProtectionDomain& domain,
                                                            absl::Span<uint8_t> arena);
std::unique_ptr<Registration> RegisterOnDemand(verbs::Device& device, verbs::ProtectionDomain& domain);

}  // namespace tokamak::transport
