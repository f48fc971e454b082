// tokamak::Span beside std::span, which only programs in C++20 have: headers_test.py compiles and
// runs this. The exit code is the number of the first check that fails.
#include <algorithm>
#include <array>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "tokamak/span.h"

namespace {

using Bytes = tokamak::Span<const uint8_t>;

static_assert(std::ranges::contiguous_range<Bytes> && std::ranges::sized_range<Bytes>);
static_assert(std::ranges::borrowed_range<Bytes> && std::ranges::view<Bytes>);
static_assert(std::is_convertible_v<Bytes, std::span<const uint8_t>>);
static_assert(std::is_convertible_v<tokamak::Span<uint8_t>, std::span<uint8_t>>);
static_assert(!std::is_convertible_v<Bytes, std::span<uint8_t>>, "what is const stays so");
static_assert(std::is_convertible_v<std::span<const uint8_t>, Bytes>);
static_assert(std::is_convertible_v<std::span<uint8_t>, tokamak::Span<uint8_t>>);
static_assert(std::is_convertible_v<std::span<uint8_t, 4>, Bytes>);
static_assert(std::is_convertible_v<std::span<const std::byte>, Bytes>);
static_assert(!std::is_convertible_v<std::span<const uint8_t>, tokamak::Span<uint8_t>>);
static_assert(!std::is_convertible_v<std::span<const int>, Bytes>, "an int is not a byte");

size_t SizeOf(std::span<const uint8_t> bytes) { return bytes.size(); }
size_t SizeOfOurs(Bytes bytes) { return bytes.size(); }

}  // namespace

int main() {
  const std::vector<uint8_t> vector = {1, 2, 3};
  const Bytes ours = vector;
  const std::span<const uint8_t> theirs = ours;
  if (theirs.data() != vector.data() || theirs.size() != 3) return 1;
  if (Bytes(theirs).data() != vector.data()) return 2;
  if (SizeOf(ours.first(2)) != 2 || SizeOfOurs(theirs.subspan(1)) != 2) return 3;
  if (std::ranges::find(ours, 3) != ours.end() - 1) return 4;
  const std::array<std::byte, 2> raw = {std::byte{7}, std::byte{8}};
  if (Bytes(raw)[1] != 8) return 5;
  return 0;
}
