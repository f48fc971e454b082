// Objects in Python: an Object reads a sealed one in place, a Writer fills a new one. Both export
// their bytes by the buffer protocol, so that memoryview and NumPy see shared memory itself.
//
// A view keeps its object, and with it the pin, alive. Memory that views still see is neither given
// back, sealed nor aborted: release() and seal() refuse, and a dropped object waits for the last
// view.
// Thread rule: with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "python/native/gil.h"
#include "tokamak/buffer.h"
#include "tokamak/span.h"

namespace tokamak::python {

// Exports bytes. `views` counts those that were not released yet.
struct Exporter {
  size_t views = 0;

  // BufferError, unless there are none. `what` cannot be done before.
  void RequireNoViews(const char* what) const;
};

struct Object final : Exporter {
  explicit Object(Buffer&& pinned) : buffer(std::move(pinned)) {}
  Object(Object&&) = delete;
  ~Object();

  void Release();
  Span<const uint8_t> bytes() const { return buffer.data(); }
  bool over() const { return buffer.empty(); }
  void OnLastView() {}

  static constexpr bool kReadOnly = true;
  Buffer buffer;
};

struct Writer final : Exporter {
  explicit Writer(MutableBuffer&& unsealed) : buffer(std::move(unsealed)) {}
  Writer(Writer&&) = delete;
  ~Writer();

  void Seal();
  void Abort();
  Span<uint8_t> bytes() { return buffer.data(); }
  bool over() const { return aborted || buffer.empty(); }
  void OnLastView();

  static constexpr bool kReadOnly = false;
  MutableBuffer buffer;
  bool aborted = false;  // when the last view is gone
};

void DefineMemory(pybind11::module_& module);

}  // namespace tokamak::python
