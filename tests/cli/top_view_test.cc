#include "lib/cli/watch/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tokamak::cli {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

ViewedNode Node(const std::string& name, uint64_t milliseconds, uint64_t pulled, uint64_t served = 0) {
  ViewedNode node;
  node.info.name = name;
  node.info.device = "soft:udp@127.0.0.1";
  node.info.capacity = uint64_t{1} << 30;
  node.numbers = {{"uptime_milliseconds", milliseconds}, {"pulled_bytes_total", pulled}, {"served_bytes_total", served},
                  {"store_used_bytes", 256 << 20},       {"store_sealed_objects", 7},    {"store_pins", 3},
                  {"rail0_bytes_total", pulled}};
  return node;
}

ViewedNode Dead(const std::string& name, NodeState state, int seconds) {
  ViewedNode node = Node(name, 0, 0);
  node.numbers.clear();
  node.state = state;
  node.unheard_for = std::chrono::seconds(seconds);
  return node;
}

ClusterView View(std::vector<ViewedNode> nodes) { return {true, std::move(nodes)}; }

Strings Lines(const ClusterView& view, const TopScreen& screen = {}, const TopRates& rates = {}) {
  return absl::StrSplit(FormatTop(view, rates, screen), '\n', absl::SkipEmpty());
}

bool Has(const std::string& line, const std::string& part) { return absl::StrContains(line, part); }

TEST(TopRatesTest, ARateIsTakenOverTheNodesOwnTime) {
  TopRates rates;
  rates.Add(View({Node("a", 1000, 1 << 20)}));
  EXPECT_EQ(rates.Of("a", "pulled_bytes_total"), std::nullopt) << "one view has no rate";
  rates.Add(View({Node("a", 3000, 5 << 20)}));
  EXPECT_EQ(rates.Of("a", "pulled_bytes_total"), 2 << 20);
  rates.Add(View({Node("a", 3000, 5 << 20)}));
  EXPECT_EQ(rates.Of("a", "pulled_bytes_total"), 2 << 20) << "the same view, once more";
  rates.Add(View({Node("a", 500, 1 << 20)}));
  EXPECT_EQ(rates.Of("a", "pulled_bytes_total"), 2 << 20) << "it was started again";
  EXPECT_EQ(rates.Of("a", "nothing_total"), std::nullopt);
  EXPECT_EQ(rates.Of("b", "pulled_bytes_total"), std::nullopt);
  rates.Add(View({}));
  EXPECT_EQ(rates.Of("a", "pulled_bytes_total"), std::nullopt);
}

TEST(TopViewTest, ShowsATitleTheTotalAndEveryNodeInNaturalOrder) {
  ClusterView view = View(
      {Node("n10", 1, 0), Node("n2", 1, 0), Dead("n3", NodeState::kSuspected, 7), Dead("n1", NodeState::kSilent, 25)});
  view.nodes[1].info.is_this = true;
  const Strings lines = Lines(view);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0], "4 nodes: 2 alive, 1 suspected, 1 silent; asked n2");
  EXPECT_TRUE(Has(lines[1], "NODE") && Has(lines[1], "STATE")) << lines[1];
  EXPECT_TRUE(Has(lines[2], "total") && Has(lines[2], "512 MiB") && Has(lines[2], "2 GiB") && Has(lines[2], "14"))
      << lines[2];
  EXPECT_TRUE(absl::StartsWith(lines[3], "n1 ") && Has(lines[3], "silent, seen 25 s ago")) << lines[3];
  EXPECT_TRUE(absl::StartsWith(lines[4], "n2 ") && Has(lines[4], "[#####...............]  25%")) << lines[4];
  EXPECT_TRUE(absl::StartsWith(lines[5], "n3 ") && Has(lines[5], "suspected, seen 7 s ago")) << lines[5];
  EXPECT_TRUE(absl::StartsWith(lines[6], "n10 ")) << lines[6];
}

TEST(TopViewTest, ANodesTroubleIsShownBeforeItsBeingAlive) {
  for (const auto& [number, word] : {std::pair("draining", "draining"), std::pair("fenced", "fenced"),
                                     std::pair("directory_away", "directory away")}) {
    ClusterView view = View({Node("a", 1, 0)});
    view.nodes[0].numbers.push_back({number, 1});
    EXPECT_TRUE(Has(Lines(view)[3], word)) << Lines(view)[3];
    EXPECT_EQ(TopToJson(view, {})["nodes"][0]["state"], word);
  }
  ClusterView view = View({Dead("a", NodeState::kAlive, 0)});
  EXPECT_TRUE(Has(Lines(view)[3], "no numbers")) << Lines(view)[3];
  view.located = false;
  EXPECT_TRUE(Has(Lines(view)[0], "the directory is away")) << Lines(view)[0];
}

TEST(TopViewTest, InANarrowTerminalTheDeviceGivesWayFirstAndRatesAndStateStay) {
  TopRates rates;
  rates.Add(View({Node("n1", 1000, 0), Node("n2", 1000, 0)}));
  ClusterView view = View({Node("n1", 2000, 100 << 20, 200 << 20), Node("n2", 2000, 0)});
  view.nodes.push_back(Dead("n3", NodeState::kSuspected, 7));
  rates.Add(view);
  for (const size_t columns : {200u, 120u, 100u, 80u, 60u, 40u}) {
    const Strings lines = Lines(view, {columns, 0, 0}, rates);
    for (const std::string& line : lines) EXPECT_LE(line.size(), columns) << line;
    if (columns < 60) continue;
    EXPECT_EQ(Has(lines[1], "DEVICE"), columns == 200) << lines[1];
    for (const char* kept : {"NODE", "USED", "IN", "OUT", "STATE"}) EXPECT_TRUE(Has(lines[1], kept)) << lines[1];
    EXPECT_TRUE(Has(lines[3], "100 MiB/s") && Has(lines[3], "200 MiB/s") && Has(lines[3], "alive")) << lines[3];
    EXPECT_TRUE(Has(lines[5], columns < 80 ? "suspected 7 s" : "suspected, seen 7 s ago")) << lines[5];
  }
}

TEST(TopViewTest, NodesBeyondTheScreenAreScrolledTo) {
  ClusterView view = View({});
  for (int i = 1; i <= 40; ++i) view.nodes.push_back(Node(absl::StrCat("n", i), 1, 0));
  TopScreen screen{100, 14, 0};
  ASSERT_EQ(NodesOnScreen(screen, 40), 10u);
  Strings lines = Lines(view, screen);
  ASSERT_EQ(lines.size(), 14u);
  EXPECT_TRUE(absl::StartsWith(lines[3], "n1 ")) << lines[3];
  EXPECT_TRUE(absl::StartsWith(lines[13], "nodes 1 to 10 of 40")) << lines[13];
  screen.first = 35;  // as it was before others left
  lines = Lines(view, screen);
  EXPECT_TRUE(absl::StartsWith(lines[3], "n31 ")) << lines[3];
  EXPECT_TRUE(absl::StartsWith(lines[13], "nodes 31 to 40 of 40")) << lines[13];
  EXPECT_EQ(NodesOnScreen({100, 43, 0}, 40), 40u) << "all fit";
  EXPECT_EQ(Lines(view, {100, 43, 0}).size(), 43u);
  for (const size_t few : {1u, 2u, 3u, 4u, 5u}) EXPECT_LE(Lines(view, {100, few, 0}).size(), few);
  EXPECT_EQ(Lines(View({}), {100, 2, 0}).size(), 2u);
}

TEST(TopViewTest, SeveralRailsAreShownSeparately) {
  TopRates rates;
  ClusterView view = View({Node("n1", 1000, 0)});
  EXPECT_FALSE(Has(Lines(view)[1], "RAILS"));
  view.nodes[0].numbers.push_back({"rail1_bytes_total", 0});
  rates.Add(view);
  view.nodes[0] = Node("n1", 2000, 1 << 20);
  view.nodes[0].numbers.push_back({"rail1_bytes_total", 2 << 20});
  rates.Add(view);
  EXPECT_TRUE(Has(Lines(view, {}, rates)[3], "1 MiB/s + 2 MiB/s")) << Lines(view, {}, rates)[3];
  EXPECT_EQ(TopToJson(view, rates)["nodes"][0]["rails_bytes_per_second"], json({1 << 20, 2 << 20}));
}

TEST(TopViewTest, JsonHoldsTheSameValues) {
  TopRates rates;
  rates.Add(View({Node("n1", 1000, 0)}));
  const ClusterView view = View({Node("n1", 2000, 1 << 20), Dead("n2", NodeState::kSilent, 12)});
  rates.Add(view);
  const json all = TopToJson(view, rates);
  EXPECT_EQ(all["located"], true);
  EXPECT_EQ(all["nodes"][0]["pulled_bytes_per_second"], 1 << 20);
  EXPECT_EQ(all["nodes"][0]["objects"], 7);
  EXPECT_EQ(all["nodes"][1]["state"], "silent");
  EXPECT_EQ(all["nodes"][1]["unheard_seconds"], 12);
  EXPECT_FALSE(all["nodes"][1].contains("objects"));
  EXPECT_EQ(all["total"]["used_bytes"], 256 << 20);
  EXPECT_EQ(TopToJson(view, {})["nodes"][0]["pulled_bytes_per_second"], nullptr);
}

}  // namespace
}  // namespace tokamak::cli
