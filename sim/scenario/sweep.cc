#include "sim/scenario/sweep.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace tokamak::sim {
namespace {

constexpr size_t kMostPoints = 1000;

std::vector<std::string> SplitValues(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  for (char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

absl::StatusOr<pid_t> Spawn(const std::string& program, std::vector<std::string> arguments) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ);
  if (error == 0) return pid;
  return absl::UnavailableError(absl::StrCat("cannot start ", program, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::vector<SweepPoint>> SweepPoints(const std::vector<std::string>& set) {
  std::vector<SweepPoint> points(1);
  for (const std::string& one : set) {
    const size_t equals = one.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == one.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", one, "': write KEY=VALUE,VALUE,..., as in nic.congestion=fixed,dcqcn"));
    }
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points) {
      for (const std::string& value : SplitValues(one.substr(equals + 1))) {
        longer.push_back(point);
        longer.back().push_back(absl::StrCat(one.substr(0, equals + 1), value));
      }
    }
    points = std::move(longer);
    if (points.size() > kMostPoints) {
      return absl::InvalidArgumentError(absl::StrCat("these are more than ", kMostPoints, " points; ask for fewer"));
    }
  }
  return points;
}

absl::StatusOr<int> RunSweep(const CommandLine& command, const std::string& program) {
  const absl::StatusOr<std::vector<SweepPoint>> points = SweepPoints(command.set);
  if (!points.ok()) return points.status();
  const size_t jobs = command.jobs != 0 ? command.jobs : std::max(1u, std::thread::hardware_concurrency());
  std::map<pid_t, size_t> running;
  std::vector<int> codes(points->size(), kBroken);
  const auto wait = [&] {
    int state = 0;
    const pid_t pid = waitpid(-1, &state, 0);
    const auto found = running.find(pid);
    if (found == running.end()) return;
    const size_t point = found->second;
    codes[point] = WIFEXITED(state) ? WEXITSTATUS(state) : static_cast<int>(kBroken);
    std::cerr << absl::StrCat("point ", point, " of ", points->size(), " (", absl::StrJoin((*points)[point], " "),
                              "): ", codes[point] == kDone ? "done" : absl::StrCat("exit code ", codes[point]), "\n");
    running.erase(found);
  };
  absl::Status broken;
  for (size_t i = 0; i < points->size() && broken.ok(); ++i) {
    std::vector<std::string> arguments = {"run",     command.scenario, "--out", absl::StrCat(command.out, "/", i),
                                          "--quiet", "--no-report"};
    for (const std::string& assignment : (*points)[i]) arguments.insert(arguments.end(), {"--set", assignment});
    while (running.size() >= jobs) wait();
    const absl::StatusOr<pid_t> pid = Spawn(program, std::move(arguments));
    if (pid.ok()) {
      running[*pid] = i;
    } else {
      broken = pid.status();
    }
  }
  while (!running.empty()) wait();
  if (!broken.ok()) return broken;
  nlohmann::json listed = nlohmann::json::array();
  for (size_t i = 0; i < points->size(); ++i) {
    listed.push_back({{"folder", std::to_string(i)}, {"set", (*points)[i]}, {"exit_code", codes[i]}});
  }
  std::ofstream file(command.out + "/points.json");
  if (!(file << listed.dump(2) << "\n")) {
    return absl::UnavailableError(absl::StrCat("cannot write ", command.out, "/points.json"));
  }
  return *std::max_element(codes.begin(), codes.end());
}

}  // namespace tokamak::sim
