// The version of Tokamak, for --version and the library (tokamak/version.h), from the file VERSION
// of the tree's root.
#pragma once

namespace tokamak::base {

// "0.1.0", or with a known commit (docs/library.md) "0.1.0 (126c5fe1f4d2)".
extern const char* const kVersion;

}  // namespace tokamak::base
