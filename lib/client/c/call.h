// Common to the calls of the C interface: handles of several files, ids and times, and an error's
// code.
#pragma once

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "tokamak/client.h"
#include "tokamak/interrupt.h"
#include "tokamak/tokamak.h"

struct tokamak_client {
  tokamak::Client client;
};

struct tokamak_buffer {
  tokamak::Buffer buffer;
};

struct tokamak_interrupt {
  tokamak::Interrupt interrupt;
};

namespace tokamak::client::c {

// The text of this thread's tokamak_error().
std::string& LastError();

inline tokamak_code Told(const Status& status) {
  if (!status.ok()) LastError() = status.message();
  return static_cast<tokamak_code>(status.code());
}

// Runs a call. Only exhausted memory is expected to throw, and only a std::exception. A cancelled
// thread (pthread_cancel(3)) is unwound like one that throws, but the unwinding must not be
// stopped: `...` would catch it.
template <typename Call>
tokamak_code Guarded(const Call& call) {
  try {
    return Told(call());
  } catch (const std::bad_alloc&) {
    LastError() = "out of memory";  // short enough to allocate nothing
    return TOKAMAK_RESOURCE_EXHAUSTED;
  } catch (const std::exception&) {
    LastError() = "internal error";
    return TOKAMAK_INTERNAL;
  }
}

// kInvalidArgument if one of `arguments` is null.
template <typename... Arguments>
Status NoneNull(const Arguments*... arguments) {
  if ((... && (arguments != nullptr))) return Status();
  return Status(StatusCode::kInvalidArgument, "an argument that must not be NULL is");
}

inline ObjectId IdOf(const tokamak_id& id) {
  std::array<uint8_t, ObjectId::kSize> bytes;
  std::memcpy(bytes.data(), id.bytes, bytes.size());
  return ObjectId(bytes);
}

inline std::vector<ObjectId> IdsOf(const tokamak_id* ids, size_t count) {
  std::vector<ObjectId> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) all.push_back(IdOf(ids[i]));
  return all;
}

inline tokamak_id ToC(const ObjectId& id) {
  tokamak_id c;
  std::memcpy(c.bytes, id.data(), sizeof(c.bytes));
  return c;
}

inline Timeout TimeoutOf(int64_t nanoseconds) { return std::chrono::nanoseconds(nanoseconds); }

inline const Interrupt* InterruptOf(const tokamak_interrupt* interrupt) {
  return interrupt == nullptr ? nullptr : &interrupt->interrupt;
}

}  // namespace tokamak::client::c
