// TopRates are the rates of nodes between views of the cluster.
//
// By the node's own time: a repeated view has the same rate.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tokamak/types.h"

namespace tokamak::cli {

class TopRates final {
 public:
  // Forgets nodes that the view lacks.
  void Add(const ClusterView& view);

  // Returns a total's rate per second; nullopt: unknown yet.
  std::optional<double> Of(const std::string& node, const std::string& total) const;

 private:
  using Numbers = std::map<std::string, uint64_t>;
  struct Node {
    Numbers now, before;
  };

  std::map<std::string, Node> nodes_;
};

}  // namespace tokamak::cli
