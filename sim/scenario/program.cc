#include "sim/scenario/program.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/units.h"
#include "lib/os/process/child_process.h"
#include "sim/large_pages.h"
#include "sim/scenario/command_line.h"
#include "sim/scenario/progress.h"
#include "sim/scenario/results.h"
#include "sim/scenario/run.h"
#include "sim/scenario/scenario_file.h"
#include "sim/scenario/sweep.h"

namespace tokamak::sim {
namespace {

namespace fs = std::filesystem;

int Fail(ExitCode code, const std::string& message) {
  std::cerr << "experiment: " << message << "\n";
  return code;
}

constexpr base::Duration kLongestReport = base::Seconds(600);

int MakeReport(const std::string& script, const std::string& folder) {
  os::ChildOptions child;
  child.argv = {"/usr/bin/python3", script, folder};
  child.own_group = false;
  const absl::StatusOr<std::unique_ptr<os::ChildProcess>> report = os::ChildProcess::Start(child);
  const absl::StatusOr<os::ExitStatus> ended = report.ok() ? (*report)->Wait(kLongestReport) : report.status();
  if (!ended.ok() || !ended->ok()) {
    return Fail(kBroken,
                "report.html could not be made, the other files are complete; see the messages above "
                "(without python3-matplotlib: ci/setup --for study, or --no-report)");
  }
  std::cerr << "see " << folder << "/report.html\n";
  return kDone;
}

int CodeOf(const Run& run, const nlohmann::json& summary) {
  if (!summary["unaccounted"].empty()) {
    return Fail(kBroken, "this is a fault of the simulator: " + summary["unaccounted"][0].get<std::string>());
  }
  switch (run.ending()) {
    case Run::Ending::kFrozen:
      return Fail(
          kFroze,
          absl::StrFormat("the network is frozen: frames wait, and nothing moved for %s. Queues that wait "
                          "for each other: %s",
                          base::FormatDuration(run.scenario().freeze_after), absl::StrJoin(run.PausedQueues(), "; ")));
    case Run::Ending::kDuration:
      return Fail(kUnfinished,
                  "the scenario's duration was over before all transfers were done; results are of that time");
    case Run::Ending::kNotReady:
      return Fail(kUnfinished, absl::StrFormat("the nodes could not join the directory of the first host within %s: "
                                               "does the network lose what they say?",
                                               base::FormatDuration(Run::kMostPreparation)));
    case Run::Ending::kFailed:
      return Fail(kFailed, "transfers failed: see the column state of transfers.csv");
    default:
      return kDone;
  }
}

int RunOne(const CommandLine& command, const std::string& script, VirtualTime& time) {
  absl::StatusOr<nlohmann::json> file = ReadJsonFile(command.scenario);
  if (!file.ok()) return Fail(kWrongUse, std::string(file.status().message()));
  for (const std::string& assignment : command.set) {
    if (absl::Status s = SetMember(assignment, &*file); !s.ok()) return Fail(kWrongUse, std::string(s.message()));
  }
  absl::StatusOr<Scenario> scenario = ScenarioFromJson(*file, fs::path(command.scenario).parent_path().string());
  if (!scenario.ok()) return Fail(kWrongUse, command.scenario + ": " + std::string(scenario.status().message()));
  std::ofstream(command.out + "/scenario.json") << file->dump(2) << "\n";

  auto run = Run::Build(time, *std::move(scenario));
  if (!run.ok()) return Fail(kWrongUse, command.scenario + ": " + std::string(run.status().message()));
  std::ostream nowhere(nullptr);
  Progress progress(command.quiet ? nowhere : std::cerr);
  (*run)->Start();
  const auto look = [&] {
    progress.Look(time.events(), time.Now() - (*run)->begin(), [&] { return (*run)->PartDone(); });
    return (*run)->over();
  };
  time.RunUntil(look, time.Now() + Run::kMostPreparation + (*run)->scenario().duration + base::Seconds(1));
  if ((*run)->ending() == Run::Ending::kFinished) {
    time.RunUntil([&] { return (*run)->quiet(); }, time.Now() + base::Milliseconds(10));
  }
  nlohmann::json summary = Summary(**run);
  const double seconds = progress.seconds();
  summary["machine"] = {{"seconds", seconds},
                        {"events", time.events()},
                        {"events_per_second", static_cast<double>(time.events()) / seconds}};
  if (absl::Status s = WriteResults(**run, summary, command.out); !s.ok()) {
    return Fail(kBroken, std::string(s.message()));
  }
  if (!command.quiet) {
    std::cerr << absl::StrFormat("%s: %s after %s simulated, in %.1f s (%.2f M events/s)\n", (*run)->scenario().name,
                                 ToString((*run)->ending()), base::FormatDuration((*run)->end() - (*run)->begin()),
                                 seconds, static_cast<double>(time.events()) / seconds / 1e6);
  }
  const int code = CodeOf(**run, summary);
  const int reported = command.report ? MakeReport(script, command.out) : kDone;
  return code != kDone ? code : reported;
}

int RunMany(const CommandLine& command, const std::string& program, const std::string& script) {
  const absl::StatusOr<int> code = RunSweep(command, program);
  if (!code.ok()) return Fail(kWrongUse, std::string(code.status().message()));
  const int reported = command.report ? MakeReport(script, command.out) : kDone;
  return *code != kDone ? *code : reported;
}

// Installed by ci/install; under Bazel in the program's runfiles, or, for a program needed by
// another, beside it.
std::string FindScript(const std::string& program, const char* name) {
  const fs::path installed = fs::path(program).parent_path().parent_path() / "share/tokamak/experiment/report.py";
  if (fs::exists(installed)) return installed.string();
  const fs::path beside = fs::absolute(name).parent_path() / "report.py";
  return fs::exists(beside) ? beside.string() : program + ".runfiles/tokamak/sim/scenario/report.py";
}

}  // namespace

int ExperimentProgram(int argc, char** argv, VirtualTime& time) {
  PreferLargePages();
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const std::string script = FindScript(program, argv[0]);
  if (const char* folder = std::getenv("BUILD_WORKING_DIRECTORY")) fs::current_path(folder);
  CommandLine command;
  CLI::App app(
      "Experiments on a simulated RoCE network. Scenarios to begin with: sim/scenario/scenarios, or where packages "
      "are\n"
      "installed /usr/share/tokamak/experiment/scenarios; docs/simulation.md.\n"
      "Exit codes: 0 done, 1 broken, 2 wrong use, 3 frozen network, 4 duration over, 5 transfers failed.",
      fs::path(argv[0]).filename().string());
  app.require_subcommand(1);
  CLI::App* run = app.add_subcommand("run", "runs a scenario: summary.json, CSV files and report.html");
  CLI::App* sweep = app.add_subcommand("sweep", "runs a scenario for all combinations of values, and compares them");
  for (CLI::App* sub : {run, sweep}) {
    sub->add_option("scenario", command.scenario, "a JSON file")->required();
    sub->add_option("--out", command.out, "a folder for the results; made where it is missing")->required();
    sub->add_flag("!--no-report", command.report, "makes no report.html");
  }
  run->add_option("--set", command.set, "KEY=VALUE: changes the scenario, as in nic.congestion=fixed; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  run->add_flag("--quiet", command.quiet, "says nothing but errors");
  sweep->add_option("--set", command.set, "KEY=VALUE,VALUE,...: the values to try; may be repeated")
      ->required()
      ->take_all()
      ->allow_extra_args(false);
  sweep->add_option("--jobs", command.jobs, "points at the same time; as many as there are processors unless given");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongUse;
  }
  if (command.report && !fs::exists(script)) {
    return Fail(
        kWrongUse,
        "report.py is not where `bazel run` or ci/install puts it, so there can be no report.html: add --no-report");
  }
  std::error_code error;
  fs::create_directories(command.out, error);
  if (error) return Fail(kWrongUse, command.out + ": " + error.message());
  return run->parsed() ? RunOne(command, script, time) : RunMany(command, program, script);
}

}  // namespace tokamak::sim
