#include "examples/checkpoint/training.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tokamak/status.h"

namespace tokamak::example {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

Status Train(Model& model, Checkpoints* checkpoints, const TrainingOptions& options, TrainingReport& report) {
  const bool begun_at_end = model.step() >= options.steps;
  const Clock::time_point begin = Clock::now();
  while (model.step() < options.steps) {
    const Clock::time_point step = Clock::now();
    report.loss = model.Step();
    if (options.on_moment != nullptr) options.on_moment(absl::StrCat("step ", model.step()));
    bool taken = false;
    if (checkpoints != nullptr && model.step() < options.steps) {
      if (Status s = checkpoints->status(); !s.ok()) return s;
      const bool due = model.step() % options.every == 0;
      taken = due && checkpoints->ready();
      if (due && !taken) ++report.skipped;
      if (taken) {
        if (Status s = checkpoints->Take(model.step(), model.state(), /*final=*/false); !s.ok()) return s;
      }
    }
    (taken ? report.steps_with_checkpoint : report.steps_alone).push_back(SecondsSince(step));
  }
  report.total = SecondsSince(begin);
  if (checkpoints == nullptr) return Status();
  const Clock::time_point end = Clock::now();
  if (!begun_at_end) {
    if (Status s = checkpoints->Take(model.step(), model.state(), /*final=*/true); !s.ok()) return s;
  }
  if (Status s = checkpoints->Finish(); !s.ok()) return s;
  report.finish = SecondsSince(end);
  return Status();
}

std::string DescribeTimes(std::vector<double> seconds) {
  if (seconds.empty()) return "none";
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    return 1e3 * seconds[static_cast<size_t>(share * static_cast<double>(seconds.size() - 1) + 0.5)];
  };
  return absl::StrFormat("median %.2f ms, 90th percentile %.2f ms, longest %.2f ms", at(0.5), at(0.9), at(1));
}

}  // namespace tokamak::example
