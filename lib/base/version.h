// The version of Tokamak, as programs print it with --version and the library tells it
// (tokamak/version.h). It stands in the file VERSION of the tree's root.
#pragma once

namespace tokamak::base {

// "0.1.0"; of a build that was told its commit (docs/library.md), "0.1.0 (126c5fe1f4d2)".
extern const char* const kVersion;

}  // namespace tokamak::base
