// Holder is the other end of the link that `tok tune` measures: it makes objects on that node.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tokamak/object_id.h"

namespace tokamak::cli::tune {

struct TestObject {
  ObjectId id;
  uint64_t size = 0;
};

class Holder {
 public:
  virtual ~Holder() = default;

  // Returns once the directory knows them all. After an error some may exist.
  virtual absl::Status Make(absl::Span<const TestObject> objects) = 0;

  virtual const std::string& node() const = 0;
  virtual uint64_t capacity() const = 0;

  // Bytes free for objects there; if unknown, the capacity.
  virtual absl::StatusOr<uint64_t> Room() = 0;
};

}  // namespace tokamak::cli::tune
