#include "lib/cli/watch/top_view.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/text/printable.h"
#include "lib/base/units.h"
#include "lib/cli/common/natural_order.h"
#include "lib/cli/common/wording.h"

namespace tokamak::cli {

using nlohmann::json;

namespace {

constexpr size_t kLinesAbove = 3;  // title, headings, total
constexpr size_t kGap = 2;         // between columns
constexpr size_t kLongBar = 20;
constexpr size_t kShortBar = 10;
constexpr size_t kRoomForWords = 80;

using Rate = std::optional<double>;

struct Row {
  std::string name;
  std::string device;
  std::string state;
  std::string brief_state;  // for narrow screens
  bool said = false;        // it reports numbers
  uint64_t used = 0;
  uint64_t capacity = 0;
  uint64_t objects = 0;
  uint64_t pins = 0;
  uint64_t pulls = 0;
  Rate in, out;
  std::vector<Rate> rails;
};

uint64_t Number(const ViewedNode& node, const std::string& name) {
  for (const NodeNumber& number : node.numbers) {
    if (number.name == name) return number.value;
  }
  return 0;
}

bool Says(const ViewedNode& node, const std::string& name) {
  return std::any_of(node.numbers.begin(), node.numbers.end(),
                     [&](const NodeNumber& number) { return number.name == name; });
}

std::string StateOf(const ViewedNode& node) {
  if (node.state != NodeState::kAlive) return Wording(node.state);
  if (node.numbers.empty()) return "no numbers";
  if (Number(node, "draining") != 0) return "draining";
  if (Number(node, "fenced") != 0) return "fenced";
  return Number(node, "directory_away") != 0 ? "directory away" : Wording(node.state);
}

Row RowOf(const ViewedNode& node, const TopRates& rates) {
  const auto rate = [&](const std::string& total) { return rates.Of(node.info.name, total); };
  Row row;
  row.name = node.info.name;
  row.device = node.info.device;
  row.state = row.brief_state = StateOf(node);
  if (node.state != NodeState::kAlive) {
    row.state = StandingOf(node);
    absl::StrAppend(&row.brief_state, " ", std::chrono::duration_cast<std::chrono::seconds>(node.unheard_for).count(),
                    " s");
  }
  row.capacity = node.info.capacity;
  row.said = !node.numbers.empty();
  if (!row.said) return row;
  row.used = Number(node, "store_used_bytes");
  row.objects = Number(node, "store_sealed_objects");
  row.pins = Number(node, "store_pins");
  row.pulls = Number(node, "pulls_running");
  row.in = rate("pulled_bytes_total");
  row.out = rate("served_bytes_total");
  for (size_t rail = 0;; ++rail) {
    const std::string total = absl::StrCat("rail", rail, "_bytes_total");
    if (!Says(node, total)) return row;
    row.rails.push_back(rate(total));
  }
}

Row Total(const std::vector<Row>& rows) {
  Row total;
  total.name = "total";
  const auto add = [](Rate& sum, const Rate& rate) {
    if (rate.has_value()) sum = sum.value_or(0) + *rate;
  };
  for (const Row& row : rows) {
    if (!row.said) continue;
    total.said = true;
    total.used += row.used;
    total.capacity += row.capacity;
    total.objects += row.objects;
    total.pins += row.pins;
    total.pulls += row.pulls;
    add(total.in, row.in);
    add(total.out, row.out);
  }
  return total;
}

std::string RateText(const Rate& rate) {
  return rate.has_value() ? absl::StrCat(base::FormatSize(static_cast<uint64_t>(*rate)), "/s") : "-";
}

std::string RailsText(const Row& row) {
  return absl::StrJoin(row.rails, " + ",
                       [](std::string* out, const Rate& rate) { absl::StrAppend(out, RateText(rate)); });
}

std::string Bar(const Row& row, size_t width) {
  if (!row.said || row.capacity == 0) return "";
  const double part = std::min(1.0, static_cast<double>(row.used) / static_cast<double>(row.capacity));
  const auto filled = static_cast<size_t>(part * static_cast<double>(width) + 0.5);
  return absl::StrFormat("[%s%s] %3.0f%%", std::string(filled, '#'), std::string(width - filled, '.'), part * 100);
}

struct Column {
  const char* title;
  enum class Flush : uint8_t { kLeft, kRight } flush;
  int stays;  // the lowest gives way first; kAlways: never
  std::vector<std::string> cells;
  size_t width = 0;

  static constexpr int kAlways = 9;
};

template <typename Text>
Column MakeColumn(const char* title, Column::Flush flush, int stays, const std::vector<Row>& rows, const Text& text) {
  Column column{title, flush, stays, {}, std::string(title).size()};
  for (const Row& row : rows) {
    column.cells.push_back(base::Printable(text(row)));
    column.width = std::max(column.width, column.cells.back().size());
  }
  return column;
}

std::vector<Column> MakeColumns(const std::vector<Row>& rows, size_t bar, bool brief) {
  constexpr auto kLeft = Column::Flush::kLeft, kRight = Column::Flush::kRight;
  const auto if_said = [](const Row& row, const std::string& text) { return row.said ? text : std::string("-"); };
  const bool has_rails = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.rails.size() > 1; });
  std::vector<Column> columns;
  columns.push_back(MakeColumn("NODE", kLeft, Column::kAlways, rows, [](const Row& row) { return row.name; }));
  if (bar > 0) columns.push_back(MakeColumn("MEMORY", kLeft, 6, rows, [&](const Row& row) { return Bar(row, bar); }));
  columns.push_back(MakeColumn("USED", kRight, Column::kAlways, rows,
                               [&](const Row& row) { return if_said(row, base::FormatSize(row.used)); }));
  columns.push_back(MakeColumn("OF", kRight, 5, rows, [](const Row& row) { return base::FormatSize(row.capacity); }));
  columns.push_back(
      MakeColumn("OBJECTS", kRight, 4, rows, [&](const Row& row) { return if_said(row, absl::StrCat(row.objects)); }));
  columns.push_back(
      MakeColumn("PINS", kRight, 2, rows, [&](const Row& row) { return if_said(row, absl::StrCat(row.pins)); }));
  columns.push_back(
      MakeColumn("PULLS", kRight, 3, rows, [&](const Row& row) { return if_said(row, absl::StrCat(row.pulls)); }));
  columns.push_back(MakeColumn("IN", kRight, Column::kAlways, rows, [](const Row& row) { return RateText(row.in); }));
  columns.push_back(MakeColumn("OUT", kRight, Column::kAlways, rows, [](const Row& row) { return RateText(row.out); }));
  if (has_rails) columns.push_back(MakeColumn("RAILS", kRight, 1, rows, RailsText));
  columns.push_back(MakeColumn("STATE", kLeft, Column::kAlways, rows,
                               [&](const Row& row) { return brief ? row.brief_state : row.state; }));
  columns.push_back(MakeColumn("DEVICE", kLeft, 0, rows, [](const Row& row) { return row.device; }));
  return columns;
}

size_t WidthOf(const std::vector<Column>& columns) {
  size_t width = 0;
  for (const Column& column : columns) width += column.width + (width == 0 ? 0 : kGap);
  return width;
}

// A long bar, else a short one; then columns give way, and words.
std::vector<Column> FittingColumns(const std::vector<Row>& rows, size_t width) {
  std::vector<Column> columns = MakeColumns(rows, kLongBar, /*brief=*/false);
  if (width == 0 || WidthOf(columns) <= width) return columns;
  columns = MakeColumns(rows, kShortBar, width < kRoomForWords);
  while (WidthOf(columns) > width) {
    const auto least = std::min_element(columns.begin(), columns.end(),
                                        [](const Column& a, const Column& b) { return a.stays < b.stays; });
    if (least->stays == Column::kAlways) break;
    columns.erase(least);
  }
  return columns;
}

std::string Line(const std::vector<Column>& columns, std::optional<size_t> row) {
  std::string line;
  for (const Column& column : columns) {
    const std::string text = row.has_value() ? column.cells[*row] : column.title;
    const std::string blank(column.width - text.size(), ' ');
    if (!line.empty()) line.append(kGap, ' ');
    absl::StrAppend(&line, column.flush == Column::Flush::kRight ? blank : "", text,
                    column.flush == Column::Flush::kRight ? "" : blank);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string Title(const ClusterView& view) {
  size_t counts[3] = {};
  std::string asked;
  for (const ViewedNode& node : view.nodes) {
    ++counts[static_cast<size_t>(node.state)];
    if (node.info.is_this) asked = node.info.name;
  }
  std::string title = absl::StrCat(view.nodes.size(), view.nodes.size() == 1 ? " node" : " nodes");
  std::vector<std::string> states;
  for (const NodeState state : {NodeState::kAlive, NodeState::kSuspected, NodeState::kSilent}) {
    const size_t count = counts[static_cast<size_t>(state)];
    if (count > 0) states.push_back(absl::StrCat(count, " ", Wording(state)));
  }
  if (!states.empty()) absl::StrAppend(&title, ": ", absl::StrJoin(states, ", "));
  if (!view.located) absl::StrAppend(&title, "; the directory is away");
  if (!asked.empty()) absl::StrAppend(&title, "; asked ", asked);
  return title;
}

std::vector<const ViewedNode*> InOrder(const ClusterView& view) {
  std::vector<const ViewedNode*> nodes;
  for (const ViewedNode& node : view.nodes) nodes.push_back(&node);
  std::sort(nodes.begin(), nodes.end(),
            [](const ViewedNode* a, const ViewedNode* b) { return NaturallyBefore(a->info.name, b->info.name); });
  return nodes;
}

json OrNull(const Rate& rate) { return rate.has_value() ? json(*rate) : json(nullptr); }

json NumbersToJson(const Row& row) {
  return {{"used_bytes", row.used},
          {"objects", row.objects},
          {"pins", row.pins},
          {"pulls", row.pulls},
          {"pulled_bytes_per_second", OrNull(row.in)},
          {"served_bytes_per_second", OrNull(row.out)}};
}

}  // namespace

size_t NodesOnScreen(const TopScreen& screen, size_t nodes) {
  if (screen.lines == 0 || nodes + kLinesAbove <= screen.lines) return nodes;
  // One line names the range shown.
  return std::min<size_t>(nodes, screen.lines > kLinesAbove + 1 ? screen.lines - kLinesAbove - 1 : 1);
}

std::string FormatTop(const ClusterView& view, const TopRates& rates, const TopScreen& screen) {
  std::vector<Row> rows;
  for (const ViewedNode* node : InOrder(view)) rows.push_back(RowOf(*node, rates));
  const size_t nodes = rows.size();
  rows.push_back(Total(rows));
  const std::vector<Column> columns = FittingColumns(rows, screen.columns);
  const size_t shown = NodesOnScreen(screen, nodes);
  const size_t first = std::min(screen.first, nodes - shown);
  std::vector<std::string> lines = {base::Printable(Title(view)), Line(columns, std::nullopt), Line(columns, nodes)};
  for (size_t row = first; row < first + shown; ++row) lines.push_back(Line(columns, row));
  if (shown < nodes) {
    lines.push_back(
        absl::StrCat("nodes ", first + 1, " to ", first + shown, " of ", nodes, ": arrows and pages scroll"));
  }
  if (screen.lines > 0 && lines.size() > screen.lines) lines.resize(screen.lines);
  std::string text;
  for (const std::string& line : lines) {
    absl::StrAppend(&text, screen.columns == 0 ? line : line.substr(0, screen.columns), "\n");
  }
  return text;
}

json TopToJson(const ClusterView& view, const TopRates& rates) {
  std::vector<Row> rows;
  json nodes = json::array();
  for (const ViewedNode* node : InOrder(view)) {
    rows.push_back(RowOf(*node, rates));
    const Row& row = rows.back();
    json one = {{"name", row.name},
                {"device", row.device},
                {"capacity_bytes", row.capacity},
                {"state", StateOf(*node)},
                {"unheard_seconds", std::chrono::duration<double>(node->unheard_for).count()}};
    if (row.said) {
      one.update(NumbersToJson(row));
      one["rails_bytes_per_second"] = json::array();
      for (const Rate& rate : row.rails) one["rails_bytes_per_second"].push_back(OrNull(rate));
    }
    nodes.push_back(std::move(one));
  }
  const Row total = Total(rows);
  json all = NumbersToJson(total);
  all["capacity_bytes"] = total.capacity;
  return {{"located", view.located}, {"nodes", nodes}, {"total", all}};
}

}  // namespace tokamak::cli
