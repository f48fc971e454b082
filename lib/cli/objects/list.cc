#include "lib/cli/objects/list.h"

#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "lib/cli/common/wording.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

using nlohmann::json;

namespace {

bool Matches(const ObjectInfo& object, const ListFlags& flags) {
  if (!flags.state.empty() && flags.state != Wording(object.state)) return false;
  if (!flags.origin.empty() && (flags.origin == "pulled") != (object.origin == Origin::kPulled)) return false;
  if (object.data_size < flags.least || object.data_size > flags.most) return false;
  if (!absl::StartsWith(object.name, flags.prefix)) return false;
  return flags.glob.empty() || fnmatch(flags.glob.c_str(), object.name.c_str(), 0) == 0;
}

// Ties by id: pages are stable.
bool Before(const ObjectInfo& x, const ObjectInfo& y, const std::string& sort) {
  if (sort == "name" && x.name.empty() != y.name.empty()) return y.name.empty();  // nameless ones last
  if (sort == "name" && x.name != y.name) return x.name < y.name;
  if (sort == "size" && x.data_size != y.data_size) return x.data_size < y.data_size;
  if (sort == "age" && x.age != y.age) return x.age < y.age;
  if (sort == "pins" && x.pins != y.pins) return x.pins < y.pins;
  return x.id < y.id;
}

void PrintNames(const std::vector<ObjectInfo>& page, bool as_json) {
  json all = json::array();
  for (const ObjectInfo& object : page) {
    const std::string name = object.name.empty() ? object.id.ToHex() : object.name;
    if (as_json) {
      all.push_back(name);
    } else {
      std::cout << base::Printable(name) << "\n";
    }
  }
  if (as_json) std::cout << ToText(std::move(all), 2) << "\n";
}

void PrintTable(const std::vector<ObjectInfo>& page) {
  std::vector<std::vector<std::string>> rows = {{"OBJECT", "DATA", "META", "STATE", "ORIGIN", "PINS", "NAME"}};
  for (const ObjectInfo& object : page) {
    rows.push_back({object.id.ToHex(), base::FormatSize(object.data_size), base::FormatSize(object.metadata_size),
                    Wording(object.state), Wording(object.origin), absl::StrCat(object.pins), object.name});
  }
  std::cout << FormatTable(rows, {1, 2, 5});
}

void PrintJson(const std::vector<ObjectInfo>& page) {
  json all = json::array();
  for (const ObjectInfo& object : page) all.push_back(ToJson(object));
  std::cout << ToText(std::move(all), 2) << "\n";
}

void AddList(CLI::App& list, ListFlags& flags) {
  list.add_option("prefix,--prefix", flags.prefix, "whose names begin like this");
  list.add_option("--glob", flags.glob, "whose names match this, as in the shell: 'dict/*.txt'; * takes / as well");
  list.add_option("--object-state", flags.state, "those in this state")
      ->check(CLI::IsMember({"unsealed", "sealed", "evicted", "deleted", "aborted"}));
  list.add_option("--origin", flags.origin, "put on this node, or copied from another")
      ->check(CLI::IsMember({"created", "pulled"}));
  AddSize(list, "--min-size", flags.least, "with this many bytes of data or more");
  AddSize(list, "--max-size", flags.most, "with this many or less");
  list.add_option("--sort", flags.sort, "by what")
      ->check(CLI::IsMember({"id", "name", "size", "age", "pins"}))
      ->capture_default_str();
  list.add_flag("-r,--reverse", flags.reverse, "the largest, oldest or last first");
  auto* const limit = list.add_option("--limit", flags.limit, "at most this many")->check(AtLeastOne());
  list.add_option("--page", flags.page, "of --limit objects each, from 1")->check(AtLeastOne())->needs(limit);
  list.add_flag("-q,--quiet", flags.quiet, "names alone, one a line; the id of what has none");
}

absl::Status List(const CommandContext& context, const ListFlags& flags) {
  auto objects = AsAbsl(context.client.List());
  if (!objects.ok()) return objects.status();
  const size_t on_node = objects->size();
  const std::vector<ObjectInfo> selected = Select(*std::move(objects), flags);

  const size_t all = selected.size();
  const size_t limit = flags.limit > 0 ? flags.limit : std::max<size_t>(all, 1);
  const size_t begin = flags.page - 1 < all / limit + 1 ? std::min(all, (flags.page - 1) * limit) : all;
  const size_t end = begin + std::min(limit, all - begin);
  const std::vector<ObjectInfo> page(selected.begin() + static_cast<int64_t>(begin),
                                     selected.begin() + static_cast<int64_t>(end));
  if (flags.quiet) {
    PrintNames(page, context.flags.json);
  } else if (context.flags.json) {
    PrintJson(page);
  } else if (all == 0) {
    std::cout << (on_node == 0 ? "no objects"
                               : absl::StrCat("none of the ", on_node, on_node == 1 ? " object" : " objects"))
              << " on node " << base::Printable(context.client.node()) << (on_node == 0 ? "" : " is asked for") << "\n";
  } else {
    PrintTable(page);
    if (end < all) std::cout << end - begin << " of " << all << "; the next with --page " << flags.page + 1 << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

Command ListCommand() {
  return CommandWithDaemon({"ls", "list the objects of a node", "tok ls --sort size --reverse --limit 10"}, AddList,
                           List);
}

std::vector<ObjectInfo> Select(std::vector<ObjectInfo> objects, const ListFlags& flags) {
  const auto unwanted = [&](const ObjectInfo& object) { return !Matches(object, flags); };
  objects.erase(std::remove_if(objects.begin(), objects.end(), unwanted), objects.end());
  std::sort(objects.begin(), objects.end(), [&](const ObjectInfo& a, const ObjectInfo& b) {
    return flags.reverse ? Before(b, a, flags.sort) : Before(a, b, flags.sort);
  });
  return objects;
}

}  // namespace tokamak::cli
