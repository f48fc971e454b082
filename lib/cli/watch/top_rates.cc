#include "lib/cli/watch/top_rates.h"

#include <utility>

namespace tokamak::cli {

namespace {

constexpr const char* kTime = "uptime_milliseconds";

std::optional<uint64_t> Find(const std::map<std::string, uint64_t>& numbers, const std::string& name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional<uint64_t>(found->second);
}

}  // namespace

void TopRates::Add(const ClusterView& view) {
  std::map<std::string, Node> nodes;
  for (const ViewedNode& viewed : view.nodes) {
    Node& node = nodes[viewed.info.name] = std::move(nodes_[viewed.info.name]);
    if (viewed.numbers.empty()) continue;
    Numbers now;
    for (const NodeNumber& number : viewed.numbers) now[number.name] = number.value;
    if (Find(now, kTime) == Find(node.now, kTime)) continue;
    node.before = std::exchange(node.now, std::move(now));
  }
  nodes_ = std::move(nodes);
}

// A restarted node begins anew.
std::optional<double> TopRates::Of(const std::string& node, const std::string& total) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::nullopt;
  const auto now = Find(found->second.now, total), then = Find(found->second.before, total);
  const auto now_at = Find(found->second.now, kTime), then_at = Find(found->second.before, kTime);
  if (!now || !then || !now_at || !then_at) return std::nullopt;
  const bool restarted = *now_at < *then_at || *now < *then;
  const uint64_t value = restarted ? *now : *now - *then, milliseconds = restarted ? *now_at : *now_at - *then_at;
  if (milliseconds == 0) return std::nullopt;
  return static_cast<double>(value) * 1000 / static_cast<double>(milliseconds);
}

}  // namespace tokamak::cli
