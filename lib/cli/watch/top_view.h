// The text and JSON of one view for `tok top`: a title, a row for all nodes and one for each, in
// natural order by name.
#pragma once

#include <cstddef>
#include <string>

#include "lib/cli/watch/top_rates.h"
#include "nlohmann/json.hpp"
#include "tokamak/types.h"

namespace tokamak::cli {

// On a narrow one columns give way: the device first, rates, memory in use and state last.
struct TopScreen {
  size_t columns = 0;  // 0: any number
  size_t lines = 0;    // likewise
  size_t first = 0;    // first node shown, if scrolled
};

size_t NodesOnScreen(const TopScreen& screen, size_t nodes);

std::string FormatTop(const ClusterView& view, const TopRates& rates, const TopScreen& screen);
nlohmann::json TopToJson(const ClusterView& view, const TopRates& rates);

}  // namespace tokamak::cli
