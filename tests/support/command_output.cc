#include "tests/support/command_output.h"

#include <cstdio>

namespace tokamak::support {

std::string OutputOf(const std::string& command) {
  std::string output;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  for (size_t got = 1; got > 0;) {
    got = std::fread(buffer, 1, sizeof(buffer), pipe);
    output.append(buffer, got);
  }
  pclose(pipe);
  return output;
}

}  // namespace tokamak::support
