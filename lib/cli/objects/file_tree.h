// FileTree is the content of a folder, by relative paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokamak::cli {

struct FileTree {
  std::vector<std::string> files;    // sorted; links to files included
  std::vector<std::string> folders;  // the empty ones, sorted
  uint64_t bytes = 0;                // of the files, as of stat

  // Other entries, with the reason: "a/pipe: a pipe". Links to folders may lead above this one: not
  // followed.
  std::vector<std::string> skipped;
};

absl::StatusOr<FileTree> ReadTree(const std::string& folder);

}  // namespace tokamak::cli
