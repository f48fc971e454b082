// Topologies as people write them, and their mistakes.
#include "sim/fabric/topology/topology_file.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

Topology Read(absl::string_view text) {
  absl::StatusOr<Topology> topology = ParseTopology(text);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return topology.ok() ? *std::move(topology) : Topology();
}

TEST(TopologyFileTest, AGeneratorTakesItsNumbers) {
  const Topology fabric = Read(R"({
    "generator": "leaf-spine", "leaves": 4, "spines": 3, "hosts_per_leaf": 5,
    "host_link": {"rate": "25Gb/s", "delay": "500ns"}, "uplink": {"rate": "100Gb/s"},
    "switch": {"ecn": {"kmin": "100KB", "kmax": "400KB", "pmax": 0.1}}
  })");
  EXPECT_EQ(fabric.hosts.size(), 20u);
  EXPECT_EQ(fabric.switches.size(), 7u);
  EXPECT_EQ(fabric.cables[0].parameters.rate.bits_per_second(), 25'000'000'000u);
  EXPECT_EQ(fabric.cables.back().parameters.rate.bits_per_second(), 100'000'000'000u);
  EXPECT_EQ(fabric.cables.back().parameters.delay, base::Nanoseconds(500)) << "as the host's, unless it says";
  EXPECT_EQ(fabric.switches[0].options.ecn.kmax, 400'000u);

  EXPECT_EQ(Read(R"({"generator": "pair"})").hosts.size(), 2u);
  EXPECT_EQ(Read(R"({"generator": "star", "hosts": 17})").hosts.size(), 17u);
  EXPECT_EQ(Read(R"({"generator": "dumbbell", "hosts_per_side": 3})").hosts.size(), 6u);
  EXPECT_EQ(Read(R"({"generator": "parking-lot", "switches": 4, "hosts_per_switch": 2})").hosts.size(), 8u);
  EXPECT_EQ(Read(R"({"generator": "fat-tree", "k": 8})").hosts.size(), 128u);
  EXPECT_EQ(Read(R"({"generator": "rail-optimised", "hosts": 4, "rails": 8, "spines": 2})").interfaces(), 32u);
}

TEST(TopologyFileTest, HostsSwitchesAndCablesOneByOne) {
  const Topology fabric = Read(R"({
    "link": {"rate": "100Gb/s", "delay": "1us"},
    "switch": {"pfc": {"lossless": [0, 3, 4], "xoff": "50KB", "xon": "25KB"},
               "weights": [1, 1, 1, 8, 1, 1, "strict", "strict"],
               "buffer": {"bytes": "8MiB", "ingress_alpha": 0.25}},
    "hosts": [{"name": "a", "addresses": ["192.168.1.1", "192.168.1.2"]}, {"name": "b"}],
    "switches": [{"name": "left"},
                 {"name": "right", "switch": {"watchdog": {"detection": "200us", "action": "forward"}}}],
    "cables": [
      {"ends": ["a:1", "left"]}, {"ends": ["a:0", "left:4"]}, {"ends": ["right", "b"], "rate": "25Gb/s"},
      {"ends": ["left:1", "right"], "loss": {"rate": 0.01, "nth": [3, 9]}},
      {"ends": ["left:2", "right"], "loss": {"rate": 0.01}, "loss_back": {"rate": 0}},
      {"ends": ["left:3", "right"], "delay": "5us"}
    ]
  })");
  ASSERT_EQ(fabric.hosts.size(), 2u);
  EXPECT_EQ(fabric.hosts[0].addresses[1].ToString(), "192.168.1.2");
  EXPECT_EQ(fabric.hosts[1].addresses[0].ToString(), "10.0.0.3");
  ASSERT_EQ(fabric.switches.size(), 2u);
  EXPECT_EQ(fabric.switches[0].options.pfc.lossless, 0x19);
  EXPECT_EQ(fabric.switches[0].options.pfc.xoff, 50'000u);
  EXPECT_EQ(fabric.switches[0].options.scheduling.weights[3], 8u);
  EXPECT_EQ(fabric.switches[0].options.scheduling.weights[6], SchedulingOptions::kStrict);
  EXPECT_EQ(fabric.switches[0].options.buffer.bytes, 8u << 20);
  EXPECT_EQ(fabric.switches[1].options.pfc.lossless, 0x19) << "what a switch does not say is as for all";
  EXPECT_EQ(fabric.switches[1].options.watchdog.detection, base::Microseconds(200));
  EXPECT_EQ(fabric.switches[1].options.watchdog.action, WatchdogOptions::Action::kForward);
  EXPECT_EQ(fabric.cables[0].ends[0].port, 1u);
  EXPECT_EQ(fabric.cables[1].ends[1].port, 4u);
  EXPECT_EQ(fabric.cables[2].parameters.rate.bits_per_second(), 25'000'000'000u);
  EXPECT_EQ(fabric.cables[3].loss[1].nth, (std::vector<uint64_t>{3, 9}));
  EXPECT_EQ(fabric.cables[4].loss[0].rate, 0.01);
  EXPECT_EQ(fabric.cables[4].loss[1].rate, 0);
  EXPECT_EQ(fabric.cables[5].parameters.delay, base::Microseconds(5));
}

TEST(TopologyFileTest, ParallelCables) {
  const Topology fabric = Read(R"({
    "hosts": [{"name": "a"}, {"name": "b"}], "switches": [{"name": "s"}, {"name": "t"}],
    "cables": [{"ends": ["a", "s"]}, {"ends": ["b", "t"]}, {"ends": ["s", "t"], "count": 3}]
  })");
  ASSERT_EQ(fabric.cables.size(), 5u);
  EXPECT_EQ(fabric.cables[4].ends[0].port, 3u);
  EXPECT_EQ(fabric.cables[4].ends[1].port, 3u);
}

TEST(TopologyFileTest, EachMistakeIsReportedInOneSentence) {
  struct Mistake {
    const char* says;
    const char* text;
  };
  const Mistake mistakes[] = {
      {"no JSON", R"({"hosts": [)"},
      {"object in {}", R"([1, 2])"},
      {"has 'generator' twice", R"({"generator": "pair", "generator": "pair"})"},
      {"there is no 'ring'", R"({"generator": "ring"})"},
      {"generator: a text", R"({"generator": 7})"},
      {"unknown key 'host'; known are", R"({"generator": "star", "host": 3})"},
      {"unknown key 'leaves'", R"({"generator": "star", "leaves": 3})"},
      {"hosts: a whole number from 1 to", R"({"generator": "star", "hosts": 0})"},
      {"hosts: a whole number from 1 to", R"({"generator": "star", "hosts": 2.5})"},
      {"k: a fat tree's k is even", R"({"generator": "fat-tree", "k": 5})"},
      {"host_link.rate: unknown unit", R"({"generator": "pair", "host_link": {"rate": "100 GB/s"}})"},
      {"host_link.delay: unknown unit", R"({"generator": "pair", "host_link": {"delay": "1 parsec"}})"},
      {"host_link: unknown key 'lenght'", R"({"generator": "pair", "host_link": {"lenght": "1us"}})"},
      {"switch.ecn: unknown key 'kmn'", R"({"generator": "star", "switch": {"ecn": {"kmn": 1}}})"},
      {"switch.pfc.lossless: there is no priority 8", R"({"generator": "star", "switch": {"pfc": {"lossless": [8]}}})"},
      {"switch.pfc.xon: it must not", R"({"generator": "star", "switch": {"pfc": {"xoff": 5, "xon": 6}}})"},
      {"switch.weights: for each", R"({"generator": "star", "switch": {"weights": [1, 2]}})"},
      {"switch.watchdog.action: it is", R"({"generator": "star", "switch": {"watchdog": {"action": "bark"}}})"},
      {"kmin is 9", R"({"generator": "star", "switch": {"ecn": {"kmin": 9, "kmax": 5}}})"},
      {"hosts[1].name: there is another 'a'", R"({"hosts": [{"name": "a"}, {"name": "a"}]})"},
      {"hosts[0]: unknown key 'nam'", R"({"hosts": [{"name": "a", "nam": "b"}]})"},
      {"hosts[0].name: a name is needed", R"({"hosts": [{}]})"},
      {"hosts[0].name: a name has no colon", R"({"hosts": [{"name": "a:1"}]})"},
      {"hosts[0].addresses", R"({"hosts": [{"name": "a", "addresses": ["10.0.0"]}]})"},
      {"hosts: a list", R"({"hosts": {"name": "a"}})"},
      {"cables[0].ends: there is no host or switch 'c'",
       R"({"hosts": [{"name": "a"}, {"name": "b"}], "cables": [{"ends": ["a", "c"]}]})"},
      {"cables[0].ends: a cable has two ends",
       R"({"hosts": [{"name": "a"}, {"name": "b"}], "cables": [{"ends": ["a"]}]})"},
      {"'b:x' names no port", R"({"hosts": [{"name": "a"}, {"name": "b"}], "cables": [{"ends": ["a", "b:x"]}]})"},
      {"port 0 of 'b' dangles",
       R"({"hosts": [{"name": "a"}, {"name": "b"}], "switches": [{"name": "s"}], "cables": [{"ends": ["a", "s"]}]})"},
      {"port 0 of 'a' has two cables",
       R"({"hosts": [{"name": "a"}, {"name": "b"}], "cables": [{"ends": ["a:0", "b"]}, {"ends": ["a:0", "b"]}]})"},
      {"cables[0].loss: unknown key 'probability'",
       R"({"hosts": [{"name": "a"}, {"name": "b"}], "cables": [{"ends": ["a", "b"], "loss": {"probability": 1}}]})"},
      {"the cable from 'a' to 'b': rate is 1.5",
       R"({"hosts": [{"name": "a"}, {"name": "b"}], "cables": [{"ends": ["a", "b"], "loss": {"rate": 1.5}}]})"},
      {"there is no host", "{}"},
  };
  for (const Mistake& mistake : mistakes) {
    const absl::Status status = ParseTopology(mistake.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << mistake.text;
    EXPECT_NE(status.message().find(mistake.says), absl::string_view::npos) << mistake.says << ": " << status;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  }
}

// The examples of docs/simulation.md.
TEST(TopologyFileTest, TheExamplesOfTheDocumentAreRight) {
  std::ifstream file("docs/simulation.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const size_t section = all.find("\n## Topology files\n");
  ASSERT_NE(section, std::string::npos);
  const std::string document = all.substr(section, all.find("\n## ", section + 1) - section);
  const std::string begin = "```json\n";
  std::vector<Topology> examples;
  for (size_t at = document.find(begin); at != std::string::npos; at = document.find(begin, at)) {
    at += begin.size();
    examples.push_back(Read(document.substr(at, document.find("```", at) - at)));
  }
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].hosts.size(), 32u);
  EXPECT_EQ(examples[1].cables.size(), 7u);
}

TEST(TopologyFileTest, AMissingFileIsReported) {
  const absl::Status status = ReadTopologyFile("no/such/topology.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("no/such/topology.json"), absl::string_view::npos);
}

}  // namespace
}  // namespace tokamak::sim
