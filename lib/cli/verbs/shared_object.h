// Where libtokamak-verbs.so is, which `tok verbs` puts under programs, and how that is said to the
// dynamic linker.
//
// Thread rule: none; FindSharedObject looks at files and the environment.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tokamak::cli::verbs {

constexpr char kSharedObject[] = "libtokamak-verbs.so";
constexpr char kSharedObjectVariable[] = "TOKAMAK_VERBS_LIBRARY";

// `wanted`, which may be empty; else what $TOKAMAK_VERBS_LIBRARY says; else beside tok, in
// ../lib/tokamak of it, or where Bazel builds it. kNotFound names the places. kInvalidArgument: the
// dynamic linker cannot be told its path.
absl::StatusOr<std::string> FindSharedObject(const std::string& wanted);

// LD_PRELOAD with `path` in front of what is in it, once; but for the runtimes of sanitizers, which
// refuse to start behind others.
std::string WithPreload(absl::string_view path, absl::string_view preload);

}  // namespace tokamak::cli::verbs
