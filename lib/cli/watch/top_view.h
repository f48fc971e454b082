// The text of one view for `tok top`: a title, a row for all nodes together and one for each, in
// natural order by name; and the same as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "lib/cli/watch/top_rates.h"
#include "nlohmann/json.hpp"
#include "tokamak/types.h"

namespace tokamak::cli {

// The available screen. On a narrow one columns give way: the device first, and rates, memory in
// use and state last. Nodes beyond the lines are scrolled to.
struct TopScreen {
  size_t columns = 0;  // 0: any number
  size_t lines = 0;    // the same
  size_t first = 0;    // first node shown, if others fill the screen
};

// Returns how many of `nodes` nodes are shown.
size_t NodesOnScreen(const TopScreen& screen, size_t nodes);

std::string FormatTop(const ClusterView& view, const TopRates& rates, const TopScreen& screen);
nlohmann::json TopToJson(const ClusterView& view, const TopRates& rates);

}  // namespace tokamak::cli
