// Finds libtokamak-verbs.so, which `tok verbs` puts under programs, and names it to the dynamic
// linker.
//
// Thread rule: none; FindSharedObject reads files and the environment.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tokamak::cli::verbs {

constexpr char kSharedObject[] = "libtokamak-verbs.so";
constexpr char kSharedObjectVariable[] = "TOKAMAK_VERBS_LIBRARY";

// Returns `wanted` unless empty; else $TOKAMAK_VERBS_LIBRARY; else beside tok, in ../lib/tokamak,
// or where Bazel builds it. kNotFound names the places. kInvalidArgument: LD_PRELOAD cannot hold
// its path.
absl::StatusOr<std::string> FindSharedObject(const std::string& wanted);

// Puts `path` first in LD_PRELOAD, once, behind only sanitizers' runtimes, which refuse to start
// behind others.
std::string WithPreload(absl::string_view path, absl::string_view preload);

}  // namespace tokamak::cli::verbs
