// A scenario of sim/scenario/scenarios, changed here and there, and run to its end.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/scenario/results.h"
#include "sim/scenario/run.h"
#include "sim/scenario/scenario_file.h"
#include "sim/time/sim_time.h"

namespace tokamak::sim {

class FinishedRun {
 public:
  explicit FinishedRun(const std::string& name, const std::vector<std::string>& changes = {}) {
    const std::string folder = "sim/scenario/scenarios";
    auto file = ReadJsonFile(folder + "/" + name + ".json");
    CHECK(file.ok()) << file.status();
    for (const std::string& change : changes) CHECK(SetMember(change, &*file).ok()) << change;
    auto scenario = ScenarioFromJson(*file, folder);
    CHECK(scenario.ok()) << scenario.status();
    const base::Time limit = time_.Now() + Run::kMostPreparation + scenario->duration + base::Seconds(1);
    auto run = Run::Build(time_, *std::move(scenario));
    CHECK(run.ok()) << run.status();
    run_ = *std::move(run);
    run_->Start();
    CHECK(time_.RunUntil([this] { return run_->over(); }, limit)) << name << " never ends";
    if (run_->ending() == Run::Ending::kFinished) {
      EXPECT_TRUE(time_.RunUntil([this] { return run_->quiet(); }, time_.Now() + base::Milliseconds(10)));
    }
    summary_ = Summary(*run_);
    EXPECT_EQ(summary_["unaccounted"], nlohmann::json::array());
  }

  const Run& run() const { return *run_; }
  const nlohmann::json& summary() const { return summary_; }
  Run::Ending ending() const { return run_->ending(); }

  double network(const char* key) const { return summary_["network"][key].get<double>(); }
  double nics(const char* key) const { return summary_["nics"][key].get<double>(); }
  double slowdown(const std::string& group) const {
    return summary_["groups"][group]["slowdown"]["mean"].get<double>();
  }

  // Duration of a group's only transfer.
  int64_t picoseconds(uint32_t transfer) const {
    const Traffic::Progress& progress = run_->traffic().progress()[transfer];
    return (progress.finish - progress.start).picoseconds();
  }

  // Payload of a group sent so far.
  uint64_t sent(uint32_t group) const { return run_->sampler().samples().back().groups[group].bytes_sent; }

 private:
  SimTime time_;
  std::unique_ptr<Run> run_;
  nlohmann::json summary_;
};

}  // namespace tokamak::sim
