// FileTree is what is below a folder, by paths relative to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokamak::cli {

struct FileTree {
  std::vector<std::string> files;    // sorted; a link to a file is one, as its bytes are what counts
  std::vector<std::string> folders;  // those with neither files nor folders in them, sorted
  uint64_t bytes = 0;                // of the files, as far as they say

  // What is neither a file nor a folder, and why: "a/pipe: a pipe". Links to folders are not
  // followed, as they may lead above this one.
  std::vector<std::string> skipped;
};

// An error names the folder that cannot be read, which may be one below `folder`.
absl::StatusOr<FileTree> ReadTree(const std::string& folder);

}  // namespace tokamak::cli
