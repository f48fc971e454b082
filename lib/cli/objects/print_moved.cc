#include "lib/cli/objects/print_moved.h"

#include <algorithm>
#include <iostream>

#include "lib/base/text/printable.h"
#include "lib/base/units.h"
#include "lib/cli/common/output.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace {

constexpr size_t kSkippedShown = 10;  // on a terminal

}  // namespace

void PrintMoved(const CommandContext& context, std::ostream& out, const char* verb, const std::string& name,
                const Moved& moved) {
  if (context.flags.json) {
    const nlohmann::json words = {{"name", name},
                                  {"files", moved.files},
                                  {"bytes", moved.bytes},
                                  {"skipped", moved.skipped.size()},
                                  {"skipped_entries", moved.skipped},
                                  {"path", moved.path}};
    out << ToText(words) << std::endl;
    return;
  }
  out << verb << " " << base::Printable(name) << ": " << moved.files << (moved.files == 1 ? " file, " : " files, ")
      << base::FormatSize(moved.bytes) << std::endl;
  for (size_t i = 0; i < std::min(moved.skipped.size(), kSkippedShown); ++i) {
    std::cerr << "tok: skipped " << base::Printable(moved.skipped[i]) << std::endl;
  }
  if (moved.skipped.size() > kSkippedShown) {
    std::cerr << "tok: skipped " << moved.skipped.size() - kSkippedShown << " more that are not files" << std::endl;
  }
}

}  // namespace tokamak::cli
