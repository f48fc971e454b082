// What can be told of a program before it is started: whether a shared object that is preloaded
// (LD_PRELOAD) reaches it.
//
// Thread rule: none; looks at files and the environment.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak::cli::verbs {

enum class Reach : uint8_t {
  kWhole,       // as far as can be told: also where it is not there, or may not be read
  kMusl,        // its dynamic linker is musl's, and loads nothing that was built for glibc
  kStatic,      // it has no dynamic linker; programs that it starts may have one
  kMoreRights,  // than who starts it: the dynamic linker preloads nothing then
};

struct ProgramFile {
  std::string path;
  Reach reach = Reach::kWhole;
};

// The one that execvp(3) would start for `command`; of a script, what the kernel starts for it.
ProgramFile FindProgramFile(const std::string& command);

}  // namespace tokamak::cli::verbs
