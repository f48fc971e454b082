// `tok ls`: the selected objects of a node, sorted, a page at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cli/common/command.h"
#include "tokamak/types.h"

namespace tokamak::cli {

struct ListFlags {
  std::string prefix;
  std::string glob;    // the shell's, but * matches / too
  std::string state;   // Wording's; empty: any
  std::string origin;  // "created" or "pulled"; empty: any
  uint64_t least = 0;  // data bytes
  uint64_t most = UINT64_MAX;
  std::string sort = "name";
  bool reverse = false;
  uint64_t limit = 0;  // objects a page; 0: all
  uint64_t page = 1;
  bool quiet = false;  // names alone
};

Command ListCommand();

// Sorts the selected ones, of all pages.
std::vector<ObjectInfo> Select(std::vector<ObjectInfo> objects, const ListFlags& flags);

}  // namespace tokamak::cli
