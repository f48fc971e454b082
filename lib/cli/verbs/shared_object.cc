#include "lib/cli/verbs/shared_object.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tokamak::cli::verbs {

namespace fs = std::filesystem;

absl::StatusOr<std::string> FindSharedObject(const std::string& wanted) {
  std::error_code error;
  std::vector<std::string> places;
  const char* const variable = std::getenv(kSharedObjectVariable);
  if (!wanted.empty()) {
    places = {wanted};
  } else if (variable != nullptr && *variable != '\0') {
    places = {variable};
  } else {
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    places = {folder / kSharedObject, folder / "../lib/tokamak" / kSharedObject,
              folder / "../verbs/user/preload" / kSharedObject};
  }
  for (const std::string& place : places) {
    const fs::path whole = fs::absolute(place, error).lexically_normal();
    if (access(whole.c_str(), R_OK) == 0) return whole.string();
  }
  return absl::NotFoundError(absl::StrCat("there is no ", absl::StrJoin(places, ", nor "),
                                          "; give --library FILE, or $", kSharedObjectVariable));
}

std::string WithPreload(absl::string_view path, absl::string_view preload) {
  std::vector<absl::string_view> libraries = {path};
  for (const absl::string_view library : absl::StrSplit(preload, absl::ByAnyChar(": "), absl::SkipEmpty())) {
    if (library != path) libraries.push_back(library);
  }
  return absl::StrJoin(libraries, ":");
}

}  // namespace tokamak::cli::verbs
