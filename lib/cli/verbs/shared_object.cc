#include "lib/cli/verbs/shared_object.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tokamak::cli::verbs {

namespace fs = std::filesystem;

namespace {

// Knows those of gcc and clang.
bool IsSanitizer(absl::string_view library) {
  const absl::string_view name = library.substr(library.rfind('/') + 1);
  for (const char* runtime : {"libasan", "libtsan", "liblsan", "libclang_rt."}) {
    if (absl::StartsWith(name, runtime)) return true;
  }
  return false;
}

// LD_PRELOAD's, without quoting.
constexpr char kSeparators[] = ": ";

absl::StatusOr<std::string> Preloadable(std::string path) {
  if (path.find_first_of(kSeparators) == std::string::npos) return path;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path, "' cannot be preloaded, as there is a space or a colon in its path; give --library FILE, or $",
      kSharedObjectVariable, ", of a copy or link elsewhere"));
}

}  // namespace

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
              folder / "../verbs/kernel/preload" / kSharedObject};
  }
  for (const std::string& place : places) {
    const fs::path whole = fs::absolute(place, error).lexically_normal();
    if (access(whole.c_str(), R_OK) == 0) return Preloadable(whole.string());
  }
  return absl::NotFoundError(absl::StrCat("there is no ", absl::StrJoin(places, ", nor "),
                                          "; give --library FILE, or $", kSharedObjectVariable));
}

std::string WithPreload(absl::string_view path, absl::string_view preload) {
  std::vector<absl::string_view> sanitizers, others;
  for (const absl::string_view library : absl::StrSplit(preload, absl::ByAnyChar(kSeparators), absl::SkipEmpty())) {
    if (library != path) (IsSanitizer(library) ? sanitizers : others).push_back(library);
  }
  std::vector<absl::string_view> libraries = std::move(sanitizers);
  libraries.push_back(path);
  libraries.insert(libraries.end(), others.begin(), others.end());
  return absl::StrJoin(libraries, ":");
}

}  // namespace tokamak::cli::verbs
