#include "lib/cli/list.h"

#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/printable.h"
#include "lib/base/units.h"
#include "lib/cli/as_absl.h"
#include "lib/cli/files.h"
#include "lib/cli/output.h"
#include "lib/cli/wording.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

using nlohmann::json;

namespace {

bool MayMatch(const ObjectInfo& object, const ListFlags& flags) {
  if (!flags.state.empty() && flags.state != Wording(object.state)) return false;
  if (!flags.origin.empty() && (flags.origin == "pulled") != (object.origin == Origin::kPulled)) return false;
  return flags.least <= object.data_size && object.data_size <= flags.most;
}

bool Matches(const NamedObject& one, const ListFlags& flags) {
  if (!absl::StartsWith(one.name, flags.prefix)) return false;
  return flags.glob.empty() || fnmatch(flags.glob.c_str(), one.name.c_str(), 0) == 0;
}

// Equal ones by id, so that pages are the same each time.
bool Before(const NamedObject& a, const NamedObject& b, const std::string& sort) {
  const ObjectInfo& x = a.object;
  const ObjectInfo& y = b.object;
  if (sort == "name" && a.name.empty() != b.name.empty()) return b.name.empty();  // what has none comes last
  if (sort == "name" && a.name != b.name) return a.name < b.name;
  if (sort == "size" && x.data_size != y.data_size) return x.data_size < y.data_size;
  if (sort == "age" && x.age != y.age) return x.age < y.age;
  if (sort == "pins" && x.pins != y.pins) return x.pins < y.pins;
  return x.id < y.id;
}

void PrintNames(const std::vector<NamedObject>& page, bool as_json) {
  json all = json::array();
  for (const NamedObject& one : page) {
    const std::string name = one.name.empty() ? one.object.id.ToHex() : one.name;
    as_json ? all.push_back(name) : static_cast<void>(std::cout << base::Printable(name) << "\n");
  }
  if (as_json) std::cout << ToText(std::move(all), 2) << "\n";
}

void PrintTable(const std::vector<NamedObject>& page) {
  std::vector<std::vector<std::string>> rows = {{"OBJECT", "DATA", "META", "STATE", "ORIGIN", "PINS", "NAME"}};
  for (const auto& [object, name] : page) {
    rows.push_back({object.id.ToHex(), base::FormatSize(object.data_size), base::FormatSize(object.metadata_size),
                    Wording(object.state), Wording(object.origin), absl::StrCat(object.pins), name});
  }
  std::cout << FormatTable(rows, {1, 2, 5});
}

void PrintJson(const std::vector<NamedObject>& page) {
  json all = json::array();
  for (const auto& [object, name] : page) all.push_back(ToJson(object, name));
  std::cout << ToText(std::move(all), 2) << "\n";
}

}  // namespace

void AddList(CLI::App& app, ListFlags& flags) {
  CLI::App* const list = NewCommand(app, "ls", "list the objects of a node", "tok ls --sort size --reverse --limit 10");
  list->add_option("prefix,--prefix", flags.prefix, "whose names begin like this");
  list->add_option("--glob", flags.glob, "whose names match this, as in the shell: 'dict/*.txt'; * takes / as well");
  list->add_option("--object-state", flags.state, "those in this state")
      ->check(CLI::IsMember({"unsealed", "sealed", "evicted", "deleted", "aborted"}));
  list->add_option("--origin", flags.origin, "put on this node, or copied from another")
      ->check(CLI::IsMember({"created", "pulled"}));
  AddSize(*list, "--min-size", flags.least, "with this many bytes of data or more");
  AddSize(*list, "--max-size", flags.most, "with this many or less");
  list->add_option("--sort", flags.sort, "by what")
      ->check(CLI::IsMember({"id", "name", "size", "age", "pins"}))
      ->capture_default_str();
  list->add_flag("-r,--reverse", flags.reverse, "the largest, oldest or last first");
  auto* const limit = list->add_option("--limit", flags.limit, "at most this many")->check(AtLeastOne());
  list->add_option("--page", flags.page, "of --limit objects each, from 1")->check(AtLeastOne())->needs(limit);
  list->add_flag("-q,--quiet", flags.quiet, "names alone, one a line; the id of what has none");
}

std::vector<NamedObject> Select(std::vector<NamedObject> objects, const ListFlags& flags) {
  const auto unwanted = [&](const NamedObject& one) { return !MayMatch(one.object, flags) || !Matches(one, flags); };
  objects.erase(std::remove_if(objects.begin(), objects.end(), unwanted), objects.end());
  std::sort(objects.begin(), objects.end(), [&](const NamedObject& a, const NamedObject& b) {
    return flags.reverse ? Before(b, a, flags.sort) : Before(a, b, flags.sort);
  });
  return objects;
}

absl::Status List(const CommandContext& context, const ListFlags& flags) {
  auto objects = AsAbsl(context.client.List());
  if (!objects.ok()) return objects.status();
  const size_t on_node = objects->size();
  // Reading a name takes an object in hand: only where it may be shown.
  const auto unwanted = [&](const ObjectInfo& object) { return !MayMatch(object, flags); };
  objects->erase(std::remove_if(objects->begin(), objects->end(), unwanted), objects->end());
  const std::vector<std::string> names = NamesOf(context.client, *objects);
  std::vector<NamedObject> named;
  for (size_t i = 0; i < objects->size(); ++i) named.push_back({(*objects)[i], names[i]});
  named = Select(std::move(named), flags);

  const size_t all = named.size();
  const size_t limit = flags.limit > 0 ? flags.limit : std::max<size_t>(all, 1);
  const size_t begin = flags.page - 1 < all / limit + 1 ? std::min(all, (flags.page - 1) * limit) : all;
  const size_t end = begin + std::min(limit, all - begin);
  const std::vector<NamedObject> page(named.begin() + static_cast<int64_t>(begin),
                                      named.begin() + static_cast<int64_t>(end));
  if (flags.quiet) {
    PrintNames(page, context.json);
  } else if (context.json) {
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

}  // namespace tokamak::cli
