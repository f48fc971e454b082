// Between Python's types and the client's, and its errors as exceptions (tokamak/errors.py).
//
// An id is an ObjectId, 20 bytes, or a str, which names one. A time-out is a number of seconds;
// None is the longest that there is.
// Thread rule: with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tokamak/object_id.h"
#include "tokamak/span.h"
#include "tokamak/status.h"
#include "tokamak/timeout.h"

namespace tokamak::python {

// The exception for an error.
pybind11::object ErrorOf(const Status& status);

// Raises it, unless it is OK.
void Check(const Status& status);

template <typename T>
T Value(Result<T>&& result) {
  Check(result.status());
  return *std::move(result);
}

// Returns the object that the interpreter made, or raises its error.
PyObject* CheckedNew(PyObject* made);

ObjectId IdOf(const pybind11::handle& id);
// The str that an id is made of, if it may be kept; else "".
std::string NameOf(const pybind11::handle& id);
std::vector<ObjectId> IdsOf(const pybind11::iterable& ids);
Timeout TimeoutOf(const pybind11::object& seconds);
pybind11::bytes BytesOf(Span<const uint8_t> bytes);

// The bytes of an object that exports them in one piece; they stay while this lives.
class ReadableBytes final {
 public:
  explicit ReadableBytes(const pybind11::handle& exporter);
  ReadableBytes(ReadableBytes&& other) noexcept : view_(std::exchange(other.view_, Py_buffer())) {}
  ReadableBytes& operator=(ReadableBytes&&) = delete;
  ~ReadableBytes() { PyBuffer_Release(&view_); }

  Span<const uint8_t> bytes() const {
    return Span<const uint8_t>(static_cast<const uint8_t*>(view_.buf), static_cast<size_t>(view_.len));
  }

 private:
  Py_buffer view_{};
};

}  // namespace tokamak::python
