// TopRates are the rates of nodes, from one view of the cluster to the next.
//
// A rate is taken over the node's own time: of a view that was made once and is shown twice it is
// the same both times.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tokamak/types.h"

namespace tokamak::cli {

class TopRates final {
 public:
  // The latest view. Nodes that are not in it are forgotten.
  void Add(const ClusterView& view);

  // Of a total, per second; nothing where it is not known yet.
  std::optional<double> Of(const std::string& node, const std::string& total) const;

 private:
  using Numbers = std::map<std::string, uint64_t>;
  struct Node {
    Numbers now, before;
  };

  std::map<std::string, Node> nodes_;
};

}  // namespace tokamak::cli
