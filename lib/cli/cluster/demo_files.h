// The demo's files: real ones of this machine, of all sizes, with their hashes.
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
  std::string sha256;  // hexadecimal
};

// Up to `most` bytes; the last has no bound.
struct SizeClass {
  const char* name;
  uint64_t most;
};
absl::Span<const SizeClass> SizeClasses();
size_t ClassOf(uint64_t bytes);

// Chooses over all size classes: the smallest, the largest within `most_bytes`, others up to
// `least_bytes` in all; repeatable. kNotFound: no readable file.
absl::StatusOr<std::vector<DemoFile>> ChooseFiles(const std::vector<std::string>& folders, uint64_t least_bytes,
                                                  uint64_t most_bytes);

std::string Sha256(absl::Span<const uint8_t> bytes);
absl::StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path);

}  // namespace tokamak::cli
