// ObjectTable gives out handles and finds their objects. Handles come from the program: expect any
// number.
//
// Thread rule: one lock's.
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "lib/verbs/kernel/object.h"

namespace tokamak::verbs::kernel {

class ObjectTable final {
 public:
  // The most objects of one opened device.
  static constexpr size_t kMaxObjects = size_t{1} << 20;

  ~ObjectTable() { Clear(); }

  // Adds an object, and returns it with its handle; null if there are too many.
  template <typename T>
  T* Add(std::unique_ptr<T> object) {
    if (objects_.size() >= kMaxObjects) return nullptr;
    T* const added = object.get();
    added->handle = ++last_;
    objects_.emplace(added->handle, std::move(object));
    return added;
  }

  // Null if `handle` names no object, or not a T.
  template <typename T>
  T* Find(uint32_t handle) const {
    const auto found = objects_.find(handle);
    return found == objects_.end() || found->second->kind != T::kKind ? nullptr : static_cast<T*>(found->second.get());
  }

  // Returns the first T that `is` accepts, or null; visits all objects.
  template <typename T, typename Predicate>
  T* FindIf(Predicate is) const {
    for (const auto& [handle, object] : objects_) {
      if (object->kind != T::kKind) continue;
      if (T* const one = static_cast<T*>(object.get()); is(*one)) return one;
    }
    return nullptr;
  }

  // ENOENT: no such handle. EINVAL: another kind's. EBUSY: it has users.
  template <typename T>
  int Destroy(uint32_t handle) {
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return ENOENT;
    if (found->second->kind != T::kKind) return EINVAL;
    if (found->second->users > 0) return EBUSY;
    objects_.erase(found);
    return 0;
  }

  void Clear() {
    while (!objects_.empty()) {
      for (auto object = objects_.begin(); object != objects_.end();) {
        object = object->second->users == 0 ? objects_.erase(object) : std::next(object);
      }
    }
  }

 private:
  std::map<uint32_t, std::unique_ptr<Object>> objects_;
  uint32_t last_ = 0;
};

}  // namespace tokamak::verbs::kernel
