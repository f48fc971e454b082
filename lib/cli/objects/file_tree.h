// FileTree is the content of a folder, by relative paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokamak::cli {

struct FileTree {
  std::vector<std::string> files;    // sorted; links to files count as files
  std::vector<std::string> folders;  // the empty ones, sorted
  uint64_t bytes = 0;                // of the files, by their own sizes

  // Entries that are neither files nor folders, with the reason: "a/pipe: a pipe". Links to folders
  // are not followed, as they may lead above this one.
  std::vector<std::string> skipped;
};

// An error names the unreadable folder, which may be below `folder`.
absl::StatusOr<FileTree> ReadTree(const std::string& folder);

}  // namespace tokamak::cli
