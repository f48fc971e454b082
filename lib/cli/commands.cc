#include "lib/cli/commands.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/base/units.h"
#include "lib/cli/as_absl.h"
#include "lib/cli/files.h"
#include "lib/cli/natural_order.h"
#include "lib/cli/output.h"
#include "lib/cli/output_file.h"
#include "lib/cli/wording.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

using nlohmann::json;

namespace {

constexpr size_t kSkippedShown = 10;  // on a terminal; JSON has all

void PrintMoved(const CommandContext& context, std::ostream& out, const char* verb, const std::string& name,
                const Moved& moved) {
  if (context.json) {
    const json words = {{"name", name},
                        {"files", moved.files},
                        {"bytes", moved.bytes},
                        {"skipped", moved.skipped.size()},
                        {"skipped_entries", moved.skipped},
                        {"path", moved.path}};
    out << ToText(words) << std::endl;
    return;
  }
  out << verb << " " << base::Printable(name) << ": " << moved.files << (moved.files == 1 ? " file, " : " files, ")
      << base::FormatSize(moved.bytes) << std::endl;
  for (size_t i = 0; i < std::min(moved.skipped.size(), kSkippedShown); ++i) {
    std::cerr << "tok: skipped " << base::Printable(moved.skipped[i]) << std::endl;
  }
  if (moved.skipped.size() > kSkippedShown) {
    std::cerr << "tok: skipped " << moved.skipped.size() - kSkippedShown << " more that are not files" << std::endl;
  }
}

absl::Status PutOne(const CommandContext& context, const std::string& path, const std::string& as) {
  if (path.empty()) return absl::InvalidArgumentError("an empty path names no file: give a FILE or DIR to put");
  if (as.empty() && IsStream(path)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no name that an object could have: give one with --as"));
  }
  std::error_code error;
  std::filesystem::path plain = std::filesystem::absolute(path, error).lexically_normal();  // "." has a name as well
  if (error)
    return absl::NotFoundError(
        absl::StrCat(path, ": the folder we are in is gone (", error.message(), "): give the whole path"));
  if (!plain.has_filename()) plain = plain.parent_path();  // "dir/" is "dir"
  const std::string name = as.empty() ? plain.filename().string() : as;
  const auto moved = PutPath(context.client, context.undo, path, name);
  if (!moved.ok()) return moved.status();
  PrintMoved(context, std::cout, "put", name, *moved);
  return absl::OkStatus();
}

absl::Status RemoveOne(const CommandContext& context, const std::string& name) {
  const auto removed = RemovePath(context.client, name);
  if (!removed.ok()) return removed.status();
  if (context.json) {
    std::cout << ToText({{"name", name}, {"objects", *removed}}) << std::endl;
  } else {
    std::cout << "removed " << base::Printable(name) << (*removed > 1 ? absl::StrCat(": ", *removed, " objects") : "")
              << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEach(const CommandContext& context, const std::vector<std::string>& items, const char* verb,
                     absl::FunctionRef<absl::Status(const std::string& item)> work) {
  if (items.size() == 1) return work(items.front());
  size_t failed = 0;
  for (const std::string& item : items) {
    const absl::Status status = work(item);
    if (status.ok()) continue;
    if (absl::IsCancelled(status) || !context.client.status().ok()) return status;
    PrintError(context.json, status);
    ++failed;
  }
  if (failed == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("could not ", verb, " ", failed, " of ", items.size()));
}

absl::Status Put(const CommandContext& context, const std::vector<std::string>& paths, const std::string& as) {
  if (!as.empty() && paths.size() > 1)
    return absl::InvalidArgumentError("--as names one object: put one path at a time");
  return ForEach(context, paths, "put", [&](const std::string& path) { return PutOne(context, path, as); });
}

absl::Status Get(const CommandContext& context, const GetFlags& flags) {
  GetSettings settings;
  settings.output = flags.output;
  settings.timeout = flags.timeout;
  settings.protocol = flags.protocol;
  const bool to_standard_output = IsStandardOutput(flags.output);
  const auto moved = GetPath(context.client, context.undo, flags.name, settings);
  if (!moved.ok()) return moved.status();
  PrintMoved(context, to_standard_output ? std::cerr : std::cout, "got", flags.name, *moved);
  if (!context.json && !to_standard_output) std::cout << "written to " << base::Printable(moved->path) << std::endl;
  return absl::OkStatus();
}

absl::Status Stat(const CommandContext& context, const std::string& name) {
  if (name.empty()) {
    const auto stats = AsAbsl(context.client.NodeStats());
    if (!stats.ok()) return stats.status();
    json numbers = json::object();
    std::vector<std::vector<std::string>> rows;
    for (const NodeNumber& number : stats->numbers) {
      numbers[number.name] = number.value;
      rows.push_back({number.name, absl::StrCat(number.value)});
    }
    if (context.json) {
      std::cout << ToText({{"node", stats->node}, {"device", stats->device}, {"numbers", numbers}}, 2) << "\n";
    } else {
      std::cout << "node " << base::Printable(stats->node) << " on " << base::Printable(stats->device) << "\n"
                << FormatTable(rows, {1});
    }
    return absl::OkStatus();
  }
  const auto stat = AsAbsl(context.client.Stat(IdOf(name)));
  if (!stat.ok()) return absl::Status(stat.status().code(), absl::StrCat(name, ": ", stat.status().message()));
  if (context.json) {
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

absl::Status Remove(const CommandContext& context, const std::vector<std::string>& names) {
  return ForEach(context, names, "remove", [&](const std::string& name) { return RemoveOne(context, name); });
}

absl::Status RemoveByPrefix(const CommandContext& context, const std::string& prefix) {
  const auto removed = RemovePrefix(context.client, prefix);
  if (!removed.ok()) return removed.status();
  if (context.json) {
    std::cout << ToText({{"prefix", prefix}, {"objects", *removed}}) << "\n";
  } else {
    std::cout << "removed " << *removed << (*removed == 1 ? " object" : " objects") << "\n";
  }
  return absl::OkStatus();
}

absl::Status Nodes(const CommandContext& context) {
  auto view = AsAbsl(context.client.Cluster());
  if (!view.ok()) return view.status();
  std::sort(view->nodes.begin(), view->nodes.end(),
            [](const ViewedNode& a, const ViewedNode& b) { return NaturallyBefore(a.info.name, b.info.name); });
  json all = json::array();
  std::vector<std::vector<std::string>> rows = {{"NODE", "ADDRESS", "DEVICE", "MEMORY", "STATE", ""}};
  for (const ViewedNode& viewed : view->nodes) {
    const NodeInfo& node = viewed.info;
    all.push_back({{"name", node.name},
                   {"address", node.address},
                   {"device", node.device},
                   {"incarnation", node.incarnation},
                   {"capacity_bytes", node.capacity},
                   {"state", Wording(viewed.state)},
                   {"unheard_seconds", std::chrono::duration<double>(viewed.unheard_for).count()},
                   {"is_this", node.is_this}});
    rows.push_back({node.name, node.address, node.device, base::FormatSize(node.capacity), StandingOf(viewed),
                    node.is_this ? "(this)" : ""});
  }
  if (!view->located) std::cerr << "tok: the directory is away: these are the nodes that it named last\n";
  std::cout << (context.json ? ToText(std::move(all), 2) + "\n" : FormatTable(rows, {3}));
  return absl::OkStatus();
}

}  // namespace tokamak::cli
