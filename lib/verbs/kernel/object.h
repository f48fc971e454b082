// Objects that a program has made through one opened device, and holds handles of.
//
// Thread rule: one lock's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "lib/verbs/datagrams.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::kernel {

enum class ObjectKind : uint8_t { kDomain, kRegion, kWindow, kCompletionQueue, kSharedReceives, kQueuePair, kAddress };

struct Object {
  explicit Object(ObjectKind object_kind) : kind(object_kind) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  const ObjectKind kind;
  uint32_t handle = 0;
  uint32_t users = 0;  // objects made of this one; while there are any it cannot be destroyed
};

class Use final {
 public:
  explicit Use(Object* object) : object_(object) {
    if (object_ != nullptr) ++object_->users;
  }
  ~Use() {
    if (object_ != nullptr) --object_->users;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Object* const object_;
};

struct DomainObject final : Object {
  static constexpr ObjectKind kKind = ObjectKind::kDomain;
  explicit DomainObject(std::unique_ptr<ProtectionDomain> made) : Object(kKind), domain(std::move(made)) {}

  const std::unique_ptr<ProtectionDomain> domain;
};

struct RegionObject final : Object {
  static constexpr ObjectKind kKind = ObjectKind::kRegion;
  RegionObject(DomainObject& of, std::unique_ptr<MemoryRegion> made)
      : Object(kKind), use(std::make_unique<Use>(&of)), domain(&of), region(std::move(made)) {}

  std::unique_ptr<Use> use;  // of its domain
  DomainObject* domain;      // another one, once the program has changed it
  const std::unique_ptr<MemoryRegion> region;
  uint32_t access = 0;  // as the program gave it
  uint64_t base = 0;    // address of the first byte, in requests
};

struct WindowObject final : Object {
  static constexpr ObjectKind kKind = ObjectKind::kWindow;
  WindowObject(DomainObject& of, std::unique_ptr<MemoryWindow> made)
      : Object(kKind), domain(&of), window(std::move(made)) {}

  const Use domain;
  const std::unique_ptr<MemoryWindow> window;
};

struct AddressObject final : Object {
  static constexpr ObjectKind kKind = ObjectKind::kAddress;
  AddressObject(DomainObject& of, std::unique_ptr<AddressHandle> made)
      : Object(kKind), domain(&of), address(std::move(made)) {}

  const Use domain;
  const std::unique_ptr<AddressHandle> address;
};

}  // namespace tokamak::verbs::kernel
