// `tok top`: the nodes of the cluster as they are now, again and again: memory, objects, transfers,
// rails.
//
// On a terminal each view takes the place of the one before; elsewhere they follow each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/cli/command.h"
#include "nlohmann/json.hpp"
#include "tokamak/client.h"
#include "tokamak/types.h"

namespace tokamak::cli {

struct TopFlags {
  uint64_t count = 0;  // views, then it ends; 0: none
  base::Duration interval = base::Seconds(1);
};

// What was seen at one moment.
struct TopSample {
  using Numbers = std::map<std::string, uint64_t>;
  std::chrono::steady_clock::time_point at;
  std::vector<NodeInfo> nodes;             // of the cluster
  std::map<std::string, Numbers> numbers;  // by node; of those whose daemons we talk to
};

void AddTop(CLI::App& app, TopFlags& flags);

// The view is of the whole cluster, with the numbers of the context's node and those of `others`.
absl::Status Top(const CommandContext& context, const TopFlags& flags, std::vector<Client>& others);

// A table, and the same as JSON. Rates are those since `before`, unknown where that has no such
// node.
std::string FormatTop(const TopSample& now, const TopSample& before);
nlohmann::json TopToJson(const TopSample& now, const TopSample& before);

}  // namespace tokamak::cli
