// What `tok top` shows of one view of the cluster: a title, a row for all nodes together and one for
// each, by name as people count; and the same as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "lib/cli/watch/top_rates.h"
#include "nlohmann/json.hpp"
#include "tokamak/types.h"

namespace tokamak::cli {

// What there is room for. Columns give way where a terminal is narrow, the device first, and rates,
// memory in use and state last; nodes beyond the lines are scrolled to.
struct TopScreen {
  size_t columns = 0;  // 0: any number
  size_t lines = 0;    // the same
  size_t first = 0;    // node that is shown, as far as others fill the screen
};

// How many nodes are shown where there are `nodes`.
size_t NodesOnScreen(const TopScreen& screen, size_t nodes);

std::string FormatTop(const ClusterView& view, const TopRates& rates, const TopScreen& screen);
nlohmann::json TopToJson(const ClusterView& view, const TopRates& rates);

}  // namespace tokamak::cli
