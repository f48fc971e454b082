#include "lib/cli/tune/command.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/text/printable.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/command.h"
#include "lib/cli/common/output.h"
#include "lib/cli/objects/output_file.h"
#include "lib/cli/tune/serve.h"
#include "lib/daemon/flags/policy_file.h"
#include "lib/os/calendar.h"

namespace tokamak::cli::tune {

using transport::Crossover;
using transport::kMeasuredProtocols;
using transport::SizeTimes;

namespace {

constexpr uint64_t kSmallest = 1024;
constexpr base::Duration kLeastBudget = base::Milliseconds(100);
constexpr base::Duration kMostBudget = base::Seconds(3600);
constexpr base::Duration kServePatience = base::Seconds(3600);

std::string TextOf(const transport::PolicyFit& fit) {
  const auto policy = transport::Policy::FromSteps(fit.steps);
  return policy.ok() ? policy->ToString() : std::string(policy.status().message());
}

std::string FormatTime(double seconds) {
  return base::FormatDuration(base::Duration::Picoseconds(static_cast<int64_t>(seconds * 1e12)));
}

std::string FormatCrossover(const Crossover& crossover) {
  return absl::StrFormat(
      "%s up to %s, %s above; 95 %% sure of %s to %s, between which the wrong one costs %.1f %% at most%s\n",
      transport::ToString(crossover.below), base::FormatSize(crossover.size), transport::ToString(crossover.above),
      base::FormatSize(crossover.least), base::FormatSize(crossover.most), crossover.loss * 100,
      TuningPlan::IsKnown(crossover) ? "" : "; a longer --budget makes it surer");
}

// On a terminal, wiped at the end.
class RoundLine final {
 public:
  RoundLine() : terminal_(isatty(STDERR_FILENO) == 1) {}
  ~RoundLine() {
    if (terminal_) std::cerr << "\r\033[K" << std::flush;
  }
  void Show(const TuningPlan& plan, base::Duration elapsed) const {
    if (!terminal_) return;
    std::cerr << "\r\033[K" << plan.samples() << " pulls, " << base::FormatDuration(elapsed)
              << (plan.has_table() ? ": " + TextOf(plan.Fit()) : "") << std::flush;
  }

 private:
  const bool terminal_;
};

absl::StatusOr<std::string> DeviceOf(Client& client, const std::string& node) {
  const auto nodes = AsAbsl(client.Nodes());
  if (!nodes.ok()) return nodes.status();
  const auto found = std::find_if(nodes->begin(), nodes->end(), [&](const auto& one) { return one.name == node; });
  if (found == nodes->end()) {
    return absl::NotFoundError(absl::StrCat("node ", client.node(), " does not know ", node,
                                            ": both must be of one cluster (tok nodes lists it)"));
  }
  return found->device;
}

absl::Status CheckFolderOf(const std::string& path) {
  if (IsStandardOutput(path)) return absl::OkStatus();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) == 0) return absl::OkStatus();
  return FileError("write", path);
}

absl::Status WriteFile(const std::string& path, const std::string& text, Undo& undo) {
  auto file = OutputFile::Open(path, 0644, undo);
  if (!file.ok()) return file.status();
  Progress progress("write", text.size());
  const auto bytes = absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  absl::Status status = file->Write(bytes, progress);
  if (status.ok()) status = undo.Complete([&] { return file->Publish(); });
  return status;
}

}  // namespace

void AddCommand(CLI::App& app, CommandFlags& flags) {
  CLI::App* const tune =
      NewCommand(app, "tune",
                 "measure by which protocol objects of which size come fastest from another node, and write the table",
                 "tok tune --budget 1s -o policy.json");
  auto* const peer = tune->add_option(
      "--peer", flags.peer,
      "the other node's name, on another machine; there runs tok tune --serve. Objects come from there");
  auto* const socket = tune->add_option("--peer-socket", flags.peer_socket,
                                        "the other node's Unix socket, on this machine; objects are put there");
  socket->type_name("FILE");
  auto* const node = tune->add_option(
      "--peer-node", flags.peer_node,
      "the other node is this one of the cluster in --state, its name or its number; the first other one unless given");
  node->transform(NumberOfNode())->type_name("NODE");
  auto* const serve = tune->add_flag(
      "--serve", flags.serve,
      "wait for a tok tune --peer or a tok bench --between that names this node, for an hour, and make objects for it");
  node->check(CLI::Range(1, 64))->excludes(peer)->excludes(socket)->excludes(serve);
  socket->excludes(peer)->excludes(serve);
  peer->excludes(serve);
  tune->add_option("--budget", flags.budget, "time to measure for; less where all is known before")
      ->type_name("TIME")
      ->capture_default_str();
  tune->add_option("--largest", flags.largest,
                   "sizes from 1KiB to this, at most an eighth of a node's memory; unless given that, or 16MiB")
      ->type_name("SIZE");
  tune->add_option("-o,--output", flags.output, "file of the table, for tokd --policy FILE.json; - for standard output")
      ->type_name("FILE")
      ->capture_default_str();
}

absl::StatusOr<LinkSettings> SettingsOf(const CommandFlags& flags) {
  LinkSettings settings;
  const auto budget = base::ParseDuration(flags.budget);
  if (!budget.ok()) return absl::InvalidArgumentError(absl::StrCat("--budget: ", budget.status().message()));
  if (*budget < kLeastBudget || *budget > kMostBudget) {
    return absl::InvalidArgumentError(
        absl::StrCat("--budget: from ", base::FormatDuration(kLeastBudget), " to ", base::FormatDuration(kMostBudget)));
  }
  settings.budget = *budget;
  settings.least = kSmallest;
  std::random_device seed;  // ids of this run alone
  settings.seed = uint64_t{seed()} << 32 | seed();
  if (flags.largest.empty()) return settings;
  const auto largest = base::ParseSize(flags.largest);
  if (!largest.ok()) return absl::InvalidArgumentError(absl::StrCat("--largest: ", largest.status().message()));
  if (*largest < kSmallest) return absl::InvalidArgumentError("--largest: at least 1KiB");
  settings.most = *largest;
  return settings;
}

std::string FormatTimes(const LinkTimes& times) {
  std::vector<std::vector<std::string>> rows = {{"SIZE", "EAGER", "READ", "WRITE", "PULLS"}};
  for (const SizeTimes& one : times.times) {
    std::vector<std::string> row = {base::FormatSize(one.size)};
    size_t pulls = 0;
    double best = 0;
    for (const std::vector<double>& samples : one.seconds) {
      const double median = transport::Median(samples);
      if (best == 0 || median < best) best = median;
    }
    for (const std::vector<double>& samples : one.seconds) {
      const double median = transport::Median(samples);
      row.push_back(absl::StrCat(FormatTime(median), median == best ? " *" : "  "));
      pulls += samples.size();
    }
    row.push_back(absl::StrCat(pulls));
    rows.push_back(std::move(row));
  }
  std::string text = FormatTable(rows, {0, 1, 2, 3, 4});
  for (const Crossover& crossover : times.fit.crossovers) absl::StrAppend(&text, FormatCrossover(crossover));
  return text;
}

namespace {

absl::Status MeasureAndWrite(const CommandFlags& flags, const LinkSettings& settings, Client& puller, Holder& holder,
                             Undo& undo, bool json) {
  if (absl::Status status = CheckFolderOf(flags.output); !status.ok()) return status;
  const auto puller_device = DeviceOf(puller, puller.node());
  if (!puller_device.ok()) return puller_device.status();
  const auto holder_device = DeviceOf(puller, holder.node());
  if (!holder_device.ok()) return holder_device.status();
  absl::StatusOr<LinkTimes> times = absl::InternalError("not measured");
  {
    const RoundLine line;
    times = MeasureLink(puller, holder, settings, undo,
                        [&](const TuningPlan& plan, base::Duration elapsed) { line.Show(plan, elapsed); });
  }
  if (!times.ok()) return times.status();
  auto policy = transport::Policy::FromSteps(times->fit.steps);
  if (!policy.ok()) return policy.status();
  daemon::PolicyMeasurement measured;
  measured.date = os::UtcText(os::UnixNanoseconds());
  measured.puller = {puller.node(), *puller_device};
  measured.holder = {holder.node(), *holder_device};
  measured.seconds = times->took.seconds();
  measured.times = times->times;
  measured.crossovers = times->fit.crossovers;
  const std::string file = daemon::FormatPolicyFile({*policy, measured});
  const bool to_standard_output = IsStandardOutput(flags.output);
  std::ostream& out = to_standard_output ? std::cerr : std::cout;
  if (!json) {
    out << base::Printable(puller.node()) << " pulls from " << base::Printable(holder.node()) << ": " << times->pulls
        << " pulls in " << base::FormatDuration(times->took) << "\n"
        << FormatTimes(*times) << "policy " << policy->ToString() << std::endl;
  }
  if (absl::Status status = WriteFile(flags.output, file, undo); !status.ok()) return status;
  if (json && !to_standard_output) std::cout << file << std::flush;
  if (!json && !to_standard_output) {
    out << "written to " << base::Printable(flags.output) << "; for every node: tokd --policy "
        << base::Printable(flags.output) << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCommand(const CommandFlags& flags, const LinkSettings& settings, Client& puller, Holder& holder,
                        Undo& undo, bool json) {
  const absl::Status status = MeasureAndWrite(flags, settings, puller, holder, undo, json);
  if (!status.ok()) undo.TakeBack().IgnoreError();  // reports the first failure
  return status;
}

absl::Status RunServe(Client& client, Undo& undo, bool json) {
  if (!json) {
    const std::string node = base::Printable(client.node());
    std::cout << "waits on node " << node << " for: tok tune --peer " << node << ", or tok bench --between " << node
              << std::endl;
  }
  const absl::Status served = Serve(client, kServePatience, undo);
  if (served.ok() && !json) std::cout << "served" << std::endl;
  return served;
}

}  // namespace tokamak::cli::tune
