// FullStoreObject is one of the objects of a store at its limit: its number decides its name, its
// sizes and every byte of it, so that whoever gets it can tell whether it is whole.
//
// Thread rule: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tokamak/object_id.h"
#include "tokamak/span.h"

namespace tokamak::daemon {

class FullStoreObject final {
 public:
  static constexpr uint64_t kNumbers = 3000;  // about 100 MiB together
  static constexpr size_t kLargest = 1 << 20;
  static constexpr size_t kMostMetadata = 100;

  // `number` below kNumbers.
  explicit FullStoreObject(uint64_t number);

  const ObjectId& id() const { return id_; }
  size_t data_size() const { return data_size_; }
  size_t metadata_size() const { return metadata_size_; }

  // `data` and `metadata` have these sizes.
  void Fill(Span<uint8_t> data, Span<uint8_t> metadata) const;

  // Whether they have these sizes and are these bytes.
  bool Is(Span<const uint8_t> data, Span<const uint8_t> metadata) const;

 private:
  uint64_t seed_;
  ObjectId id_;
  size_t data_size_;
  size_t metadata_size_;
};

}  // namespace tokamak::daemon
