// The version of Tokamak, as every program prints it with --version.
#pragma once

namespace tokamak::base {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace tokamak::base
