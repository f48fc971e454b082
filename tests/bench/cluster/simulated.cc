// How fast the nodes of a simulated cluster get objects of each other: the cluster benchmark in
// virtual time.
//
//   bazel-bin/tests/bench/cluster/simulated --rate 200Gb/s --patterns all-to-all --json out.json
//
// Everything but the hosts, their network and their sockets is as in main.cc; see virtual_run.h.
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "sim/costs/presets.h"
#include "sim/fabric/link/rate.h"
#include "tests/bench/cluster/report.h"
#include "tests/bench/cluster/settings.h"
#include "tests/bench/cluster/virtual/virtual_run.h"

namespace tokamak::bench {
namespace {

int Fail(const absl::Status& status, int code) {
  std::cerr << "simulated: " << status.message() << std::endl;
  return code;
}

int Main(int argc, char** argv) {
  const ParsedSettings parsed = ParseSettings(argc, argv, Place::kSimulation);
  if (!parsed.run) {
    (parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.text << std::flush;
    return parsed.exit_code;
  }
  VirtualRunOptions options;
  options.settings = parsed.settings;
  const auto rate = sim::Rate::Parse(parsed.settings.rate);
  if (!rate.ok()) return Fail(absl::InvalidArgumentError(absl::StrCat("--rate: ", rate.status().message())), 2);
  options.rate = *rate;
  const auto costs = sim::FindPreset(parsed.settings.costs, std::filesystem::current_path().string());
  if (!costs.ok()) return Fail(absl::InvalidArgumentError(absl::StrCat("--costs: ", costs.status().message())), 2);
  options.costs = *costs;
  if (!parsed.settings.policy.empty()) {
    auto policy = transport::Policy::Parse(parsed.settings.policy);
    if (!policy.ok()) return Fail(absl::InvalidArgumentError(absl::StrCat("--policy: ", policy.status().message())), 2);
    options.policy = *std::move(policy);
  }
  const auto plan = MakePlan(parsed.settings, parsed.settings.ranks);
  if (!plan.ok()) return Fail(plan.status(), 2);

  size_t over = 0;
  VirtualRun run(options, *plan);
  auto results = run.Run([&](const CaseResult& result) {
    std::cerr << ++over << " of " << plan->cases.size() << ": "
              << Report::Line(result, plan->contenders[result.what.contender]) << std::endl;
  });
  if (!results.ok()) return Fail(results.status(), 1);

  std::string command;
  for (int i = 0; i < argc; ++i) absl::StrAppend(&command, i == 0 ? "simulated" : absl::StrCat(" ", argv[i]));
  const uint32_t ranks = parsed.settings.ranks;
  const Report report(
      {ranks, /*hosts=*/ranks, absl::StrCat("simulated hosts, ", parsed.settings.costs, ", ", rate->ToString()),
       "virtual time", command},
      plan->contenders, *std::move(results));
  const absl::Status told = report.Tell(std::cout, parsed.settings);
  return told.ok() ? 0 : Fail(told, 1);
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) {
  tokamak::base::SetLogLevel(tokamak::base::Severity::kWarning);
  return tokamak::bench::Main(argc, argv);
}
