#include "sim/scenario/sweep.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/check.h"
#include "lib/os/process/child_process.h"
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

struct Running {
  size_t point;
  std::unique_ptr<os::ChildProcess> process;
};

// Takes out the first to end; the scenario's duration bounds it.
std::pair<size_t, os::ExitStatus> AwaitOne(std::vector<Running>& running) {
  std::vector<pollfd> ends;
  for (const Running& one : running) ends.push_back({one.process->descriptor(), POLLIN, 0});
  while (true) {
    const int count = poll(ends.data(), ends.size(), -1);
    CHECK(count > 0 || errno == EINTR) << std::strerror(errno);
    for (size_t i = 0; count > 0 && i < ends.size(); ++i) {
      if (ends[i].revents == 0) continue;
      const size_t point = running[i].point;
      const absl::StatusOr<os::ExitStatus> ended = running[i].process->Wait(base::Seconds(1));
      running.erase(running.begin() + static_cast<ptrdiff_t>(i));
      return {point, ended.value_or(os::ExitStatus{kBroken, 0})};
    }
  }
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
  std::vector<Running> running;
  std::vector<int> codes(points->size(), kBroken);
  const auto wait = [&] {
    const auto [point, ended] = AwaitOne(running);
    codes[point] = ended.signal == 0 ? ended.code : static_cast<int>(kBroken);
    std::cerr << absl::StrCat("point ", point, " of ", points->size(), " (", absl::StrJoin((*points)[point], " "),
                              "): ", codes[point] == kDone ? "done" : absl::StrCat("exit code ", codes[point]), "\n");
  };
  absl::Status broken;
  for (size_t i = 0; i < points->size() && broken.ok(); ++i) {
    os::ChildOptions child;
    child.argv = {program,   "run",        command.scenario, "--out", absl::StrCat(command.out, "/", i),
                  "--quiet", "--no-report"};
    for (const std::string& assignment : (*points)[i]) child.argv.insert(child.argv.end(), {"--set", assignment});
    child.own_group = false;  // a keyboard's interrupt ends them, too
    while (running.size() >= jobs) wait();
    absl::StatusOr<std::unique_ptr<os::ChildProcess>> process = os::ChildProcess::Start(child);
    if (process.ok()) {
      running.push_back({i, *std::move(process)});
    } else {
      broken = process.status();
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
