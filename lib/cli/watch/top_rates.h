// TopRates are the rates of nodes between views of the cluster.
//
// A rate is over the node's own time: a view shown twice has the same rate both times.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tokamak/types.h"

namespace tokamak::cli {

class TopRates final {
 public:
  // Adds the latest view, and forgets nodes that it lacks.
  void Add(const ClusterView& view);

  // Returns a total's rate per second; nullopt: not known yet.
  std::optional<double> Of(const std::string& node, const std::string& total) const;

 private:
  using Numbers = std::map<std::string, uint64_t>;
  struct Node {
    Numbers now, before;
  };

  std::map<std::string, Node> nodes_;
};

}  // namespace tokamak::cli
