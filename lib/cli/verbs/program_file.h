// Tells before a program starts whether a preloaded shared object (LD_PRELOAD) reaches it.
//
// Thread rule: none; reads files and the environment.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak::cli::verbs {

enum class Reach : uint8_t {
  kWhole,       // as far as known: also if missing or unreadable
  kMusl,        // musl's dynamic linker loads nothing built for glibc
  kStatic,      // no dynamic linker; programs that it starts may have one
  kMoreRights,  // than its starter: nothing is preloaded
};

struct ProgramFile {
  std::string path;
  Reach reach = Reach::kWhole;
};

// Returns the file that execvp(3) would start for `command`; for a script, the kernel's choice.
ProgramFile FindProgramFile(const std::string& command);

}  // namespace tokamak::cli::verbs
