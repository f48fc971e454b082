// The demo's files: real ones of this machine, from a byte to the largest, with their hashes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tokamak::cli {

struct DemoFile {
  std::string path;
  uint64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
};

// The upper bounds of the size classes; the last is without bound.
struct SizeClass {
  const char* name;
  uint64_t most;
};
absl::Span<const SizeClass> SizeClasses();
size_t ClassOf(uint64_t bytes);

// Files below `folders`, spread over all size classes: the smallest, the largest that fits
// `most_bytes`, and others until they have `least_bytes` together. The same choice each time for
// the same files. kNotFound: nothing that can be read.
absl::StatusOr<std::vector<DemoFile>> ChooseFiles(const std::vector<std::string>& folders, uint64_t least_bytes,
                                                  uint64_t most_bytes);

std::string Sha256(absl::Span<const uint8_t> bytes);
absl::StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path);

}  // namespace tokamak::cli
