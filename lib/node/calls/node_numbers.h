// NodeNumbers is what a node reports of itself to others: some numbers by name, and where its page
// is.
//
//   on the wire, service kNumbers:
//   (nothing)   -> page text  [name text  value u64]
//
// Untrusted input: decoded, it is short and has no characters that a terminal or a page may
// interpret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace tokamak::node {

struct NodeNumber {
  std::string name;  // of a-z, 0-9 and _; unit last: store_used_bytes; totals since the start end in _total
  uint64_t value = 0;
};

struct NodeNumbers {
  static constexpr size_t kMaxNumbers = 48;  // further ones are left out
  static constexpr size_t kMaxName = 48;     // bytes
  static constexpr size_t kMaxPage = 64;     // bytes

  std::string page;  // HTTP address, "10.0.0.1:9464"; empty: none
  std::vector<NodeNumber> numbers;

  static std::vector<uint8_t> Encode(const NodeNumbers& numbers);
  // nullopt: malformed.
  static std::optional<NodeNumbers> Decode(absl::Span<const uint8_t> bytes);
};

}  // namespace tokamak::node
