#include "lib/cli/objects/stat.h"

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "lib/cli/common/wording.h"
#include "lib/cli/objects/files.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

using nlohmann::json;

namespace {

struct StatFlags {
  std::string name;
};

void AddStat(CLI::App& stat, StatFlags& own) { stat.add_option("name", own.name, "name or 40-digit id"); }

absl::Status StatNode(const CommandContext& context) {
  const auto stats = AsAbsl(context.client.NodeStats());
  if (!stats.ok()) return stats.status();
  json numbers = json::object();
  std::vector<std::vector<std::string>> rows;
  for (const NodeNumber& number : stats->numbers) {
    numbers[number.name] = number.value;
    rows.push_back({number.name, absl::StrCat(number.value)});
  }
  if (context.flags.json) {
    std::cout << ToText({{"node", stats->node}, {"device", stats->device}, {"numbers", numbers}}, 2) << "\n";
  } else {
    std::cout << "node " << base::Printable(stats->node) << " on " << base::Printable(stats->device) << "\n"
              << FormatTable(rows, {1});
  }
  return absl::OkStatus();
}

absl::Status StatObject(const CommandContext& context, const std::string& name) {
  const auto stat = AsAbsl(context.client.Stat(IdOf(name)));
  if (!stat.ok()) return absl::Status(stat.status().code(), absl::StrCat(name, ": ", stat.status().message()));
  if (context.flags.json) {
    json object = ToJson(stat->object);
    object["here"] = stat->here;
    object["holders"] = stat->holders;
    object["directory_answered"] = stat->located;
    std::cout << ToText(std::move(object), 2) << "\n";
    return absl::OkStatus();
  }
  std::string holders;
  for (const std::string& holder : stat->holders) absl::StrAppend(&holders, holders.empty() ? "" : ", ", holder);
  if (!stat->located) holders = "unknown: the directory did not answer";
  std::vector<std::vector<std::string>> rows = {{"object", stat->object.id.ToHex()},
                                                {"name", stat->object.name},
                                                {"data", absl::StrCat(stat->object.data_size, " bytes")},
                                                {"metadata", absl::StrCat(stat->object.metadata_size, " bytes")},
                                                {"holders", holders}};
  if (stat->here) {
    rows.push_back(
        {"here", absl::StrCat(Wording(stat->object.state), ", ", Wording(stat->object.origin), ", ", stat->object.pins,
                              " pins", stat->object.pinned_here ? ", kept by tok pin" : "")});
  } else {
    rows.push_back({"here", "no"});
  }
  std::cout << FormatTable(rows);
  return absl::OkStatus();
}

absl::Status Stat(const CommandContext& context, const StatFlags& own) {
  return own.name.empty() ? StatNode(context) : StatObject(context, own.name);
}

}  // namespace

Command StatCommand() {
  return CommandWithDaemon(
      {"stat", "one object and who holds it; without a name, the node's numbers", "tok stat release"}, AddStat, Stat);
}

}  // namespace tokamak::cli
