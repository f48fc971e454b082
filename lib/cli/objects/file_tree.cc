#include "lib/cli/objects/file_tree.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace tokamak::cli {

namespace fs = std::filesystem;

namespace {

const char* KindText(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a link to a folder";
    case fs::file_type::not_found:
      return "a link that leads nowhere";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return "neither a file nor a folder";
  }
}

}  // namespace

absl::StatusOr<FileTree> ReadTree(const std::string& folder) {
  FileTree tree;
  std::vector<std::string> waiting = {""};  // relative
  while (!waiting.empty()) {
    const std::string relative = std::move(waiting.back());
    waiting.pop_back();
    const fs::path here = relative.empty() ? fs::path(folder) : fs::path(folder) / relative;
    bool bare = true;
    std::error_code error;
    for (fs::directory_iterator it(here, error); !error && it != fs::directory_iterator(); it.increment(error)) {
      const std::string path = (fs::path(relative) / it->path().filename()).string();
      std::error_code none;
      const fs::file_type type = it->status(none).type();
      if (type == fs::file_type::directory && !it->is_symlink(none)) {
        bare = false;
        waiting.push_back(path);
      } else if (type == fs::file_type::regular) {
        bare = false;
        const uint64_t bytes = it->file_size(none);
        if (!none) tree.bytes += bytes;
        tree.files.push_back(path);
      } else {
        tree.skipped.push_back(absl::StrCat(path, ": ", KindText(type)));
      }
    }
    if (error) return absl::PermissionDeniedError(absl::StrCat("cannot read ", here.string(), ": ", error.message()));
    if (bare && !relative.empty()) tree.folders.push_back(relative);
  }
  std::sort(tree.files.begin(), tree.files.end());
  std::sort(tree.folders.begin(), tree.folders.end());
  std::sort(tree.skipped.begin(), tree.skipped.end());
  return tree;
}

}  // namespace tokamak::cli
