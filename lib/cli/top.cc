#include "lib/cli/top.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/base/units.h"
#include "lib/cli/as_absl.h"
#include "lib/cli/output.h"

namespace tokamak::cli {

using nlohmann::json;

namespace {

// One row: a node, its numbers, and what they were.
class Row final {
 public:
  Row(const NodeInfo& node, const TopSample& now, const TopSample& before)
      : node_(node),
        numbers_(Find(now, node.name)),
        before_(Find(before, node.name)),
        seconds_(std::chrono::duration<double>(now.at - before.at).count()) {}

  const NodeInfo& node() const { return node_; }
  bool seen() const { return numbers_ != nullptr; }

  uint64_t Number(const std::string& name) const { return ValueIn(*numbers_, name); }

  // Per second; nothing where it is not known.
  std::optional<double> Rate(const std::string& name) const { return RateOf(Number(name), name, ValueIn); }

  // Bytes per second of each rail, of all engines.
  std::vector<std::optional<double>> Rails() const {
    std::vector<std::optional<double>> rates;
    while (true) {
      const std::string suffix = absl::StrCat("_rail", rates.size(), "_bytes_total");
      const bool exists = std::any_of(numbers_->begin(), numbers_->end(),
                                      [&](const auto& one) { return absl::EndsWith(one.first, suffix); });
      if (!exists) return rates;
      rates.push_back(RateOf(SumIn(*numbers_, suffix), suffix, SumIn));
    }
  }

  std::string State() const {
    if (!seen()) return "no numbers";
    if (Number("fenced") != 0) return "fenced";
    return Number("directory_away") != 0 ? "directory away" : "ok";
  }

 private:
  using Numbers = TopSample::Numbers;
  using Value = uint64_t (*)(const Numbers&, const std::string&);

  static const Numbers* Find(const TopSample& sample, const std::string& node) {
    const auto found = sample.numbers.find(node);
    return found == sample.numbers.end() ? nullptr : &found->second;
  }
  static uint64_t ValueIn(const Numbers& numbers, const std::string& name) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? 0 : found->second;
  }
  static uint64_t SumIn(const Numbers& numbers, const std::string& suffix) {
    uint64_t sum = 0;
    for (const auto& [name, value] : numbers) sum += absl::EndsWith(name, suffix) ? value : 0;
    return sum;
  }
  // A node that was started again begins from nothing.
  std::optional<double> RateOf(uint64_t value, const std::string& name, Value value_in) const {
    if (before_ == nullptr || seconds_ <= 0) return std::nullopt;
    const uint64_t earlier = value_in(*before_, name);
    return static_cast<double>(value < earlier ? value : value - earlier) / seconds_;
  }

  const NodeInfo& node_;
  const Numbers* const numbers_;
  const Numbers* const before_;
  const double seconds_;
};

std::string RateText(std::optional<double> rate) {
  return rate.has_value() ? absl::StrCat(base::FormatSize(static_cast<uint64_t>(*rate)), "/s") : "-";
}

json OrNull(std::optional<double> rate) { return rate.has_value() ? json(*rate) : json(nullptr); }

// What fits onto the terminal.
std::string Cut(const std::string& text) {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row < 2) return text;
  std::string cut;
  int rows = 0;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    if (++rows >= window.ws_row) break;
    absl::StrAppend(&cut, line.substr(0, window.ws_col), "\n");
  }
  return cut;
}

// Takes the place of what the terminal shows.
std::string Redraw(const std::string& text) {
  std::string drawn = "\033[H";
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n'))
    absl::StrAppend(&drawn, line, "\033[K\n");
  return absl::StrCat(drawn, "\033[J");
}

absl::StatusOr<TopSample> Look(Client& client, std::vector<Client>& others) {
  TopSample sample;
  auto stats = AsAbsl(client.NodeStats());
  if (!stats.ok()) return stats.status();
  const auto nodes = AsAbsl(client.Nodes());
  if (nodes.ok()) {
    sample.nodes = *nodes;
  } else {  // the directory is away: this one is there
    NodeInfo self;
    self.name = client.node();
    self.device = stats->device;
    self.capacity = client.capacity();
    self.is_this = true;
    sample.nodes = {self};
  }
  const auto add = [&](const NodeStats& of) {
    for (const NodeNumber& number : of.numbers) sample.numbers[of.node][number.name] = number.value;
  };
  add(*stats);
  for (Client& other : others) {
    if (const auto more = AsAbsl(other.NodeStats()); more.ok()) add(*more);
  }
  sample.at = std::chrono::steady_clock::now();
  return sample;
}

}  // namespace

void AddTop(CLI::App& app, TopFlags& flags) {
  CLI::App* const top =
      NewCommand(app, "top", "watch the nodes of the cluster: memory, objects, transfers, rails", "tok top -n 1");
  top->add_option("-n,--count", flags.count, "end after this many views")->check(AtLeastOne());
  AddDuration(*top, "--interval", flags.interval, "from one view to the next");
}

std::string FormatTop(const TopSample& now, const TopSample& before) {
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "DEVICE", "USED", "OF", "OBJECTS", "PINS", "PULLS", "PULLED", "RAILS", "STATE"}};
  for (const NodeInfo& node : now.nodes) {
    const Row row(node, now, before);
    if (!row.seen()) {
      rows.push_back(
          {node.name, node.device, "-", base::FormatSize(node.capacity), "-", "-", "-", "-", "-", row.State()});
      continue;
    }
    std::string rails;
    for (const auto& rate : row.Rails()) absl::StrAppend(&rails, rails.empty() ? "" : " + ", RateText(rate));
    rows.push_back({node.name, node.device, base::FormatSize(row.Number("store_used_bytes")),
                    base::FormatSize(node.capacity), absl::StrCat(row.Number("store_sealed_objects")),
                    absl::StrCat(row.Number("store_pins")), absl::StrCat(row.Number("pulls_running")),
                    RateText(row.Rate("pulled_bytes_total")), rails, row.State()});
  }
  return FormatTable(rows, {2, 3, 4, 5, 6, 7, 8});
}

json TopToJson(const TopSample& now, const TopSample& before) {
  json nodes = json::array();
  for (const NodeInfo& node : now.nodes) {
    const Row row(node, now, before);
    json one = {
        {"name", node.name}, {"device", node.device}, {"capacity_bytes", node.capacity}, {"state", row.State()}};
    if (row.seen()) {
      one["used_bytes"] = row.Number("store_used_bytes");
      one["objects"] = row.Number("store_sealed_objects");
      one["pins"] = row.Number("store_pins");
      one["pulls"] = row.Number("pulls_running");
      one["pulled_bytes_per_second"] = OrNull(row.Rate("pulled_bytes_total"));
      one["rails_bytes_per_second"] = json::array();
      for (const auto& rate : row.Rails()) one["rails_bytes_per_second"].push_back(OrNull(rate));
    }
    nodes.push_back(std::move(one));
  }
  return {{"nodes", nodes}};
}

absl::Status Top(const CommandContext& context, const TopFlags& flags, std::vector<Client>& others) {
  const bool redraws = !context.json && isatty(STDOUT_FILENO) == 1 && flags.count != 1;
  TopSample before;
  for (uint64_t view = 0; flags.count == 0 || view < flags.count; ++view) {
    if (view > 0) std::this_thread::sleep_for(AsTimeout(flags.interval).duration());
    auto now = Look(context.client, others);
    if (!now.ok()) return now.status();
    if (context.json) {
      std::cout << ToText(TopToJson(*now, before)) << "\n";
    } else {
      const std::string text = FormatTop(*now, before);
      std::cout << (redraws ? Redraw(Cut(text)) : absl::StrCat(view > 0 ? "\n" : "", text));
    }
    if (!std::cout.flush().good()) return absl::OkStatus();  // which is said at the end
    before = *std::move(now);
  }
  return absl::OkStatus();
}

}  // namespace tokamak::cli
