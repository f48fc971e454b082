// Bytes on the wire and in memory: fixed-width integers in either byte order, and the one copy that
// logic makes.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "lib/base/event_loop.h"

namespace tokamak::base {

inline uint16_t LoadBig16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
inline uint32_t LoadBig24(const uint8_t* p) { return uint32_t{p[0]} << 16 | uint32_t{p[1]} << 8 | p[2]; }
inline uint32_t LoadBig32(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}
inline uint64_t LoadBig64(const uint8_t* p) { return uint64_t{LoadBig32(p)} << 32 | LoadBig32(p + 4); }

inline void StoreBig16(uint8_t* p, uint16_t v) {
  p[0] = static_cast<uint8_t>(v >> 8);
  p[1] = static_cast<uint8_t>(v);
}
inline void StoreBig24(uint8_t* p, uint32_t v) {
  p[0] = static_cast<uint8_t>(v >> 16);
  p[1] = static_cast<uint8_t>(v >> 8);
  p[2] = static_cast<uint8_t>(v);
}
inline void StoreBig32(uint8_t* p, uint32_t v) {
  p[0] = static_cast<uint8_t>(v >> 24);
  p[1] = static_cast<uint8_t>(v >> 16);
  p[2] = static_cast<uint8_t>(v >> 8);
  p[3] = static_cast<uint8_t>(v);
}
inline void StoreBig64(uint8_t* p, uint64_t v) {
  StoreBig32(p, static_cast<uint32_t>(v >> 32));
  StoreBig32(p + 4, static_cast<uint32_t>(v));
}

template <typename T>
T LoadLittle(const uint8_t* p) {
  T v = 0;
  for (size_t i = 0; i < sizeof(T); ++i) v = static_cast<T>(v | static_cast<T>(p[i]) << (8 * i));
  return v;
}
template <typename T>
void StoreLittle(uint8_t* p, T v) {
  for (size_t i = 0; i < sizeof(T); ++i) p[i] = static_cast<uint8_t>(v >> (8 * i));
}

// A task copies or hashes at most this before it posts its continuation, so as not to hold its
// loop.
constexpr size_t kMaxCopyPerTask = 256 * 1024;

// Copies `size` bytes, and spends the time of that on `loop`. The regions must not overlap; size <=
// kMaxCopyPerTask.
inline void Copy(EventLoop& loop, uint8_t* to, const uint8_t* from, size_t size) {
  if (size == 0) return;
  std::memcpy(to, from, size);
  loop.SpendOnCopy(size);
}

}  // namespace tokamak::base
