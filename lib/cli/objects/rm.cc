#include "lib/cli/objects/rm.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/cli/common/output.h"
#include "lib/cli/objects/files.h"
#include "lib/cli/objects/for_each.h"

namespace tokamak::cli {

namespace {

struct RemoveFlags {
  std::vector<std::string> names;
  std::string prefix;
};

void AddRemove(CLI::App& rm, RemoveFlags& own) {
  auto* const names = rm.add_option("name", own.names, "names or 40-digit ids");
  rm.add_option("--prefix", own.prefix,
                "delete all objects that the node holds and whose names begin like this, such as dict/")
      ->excludes(names);
  rm.callback([&own] {
    if (!own.names.empty() || !own.prefix.empty()) return;
    throw CLI::ValidationError("rm", "give a name, or a --prefix that is not empty");
  });
}

absl::Status RemoveOne(const CommandContext& context, const std::string& name) {
  const auto removed = RemovePath(context.client, name);
  if (!removed.ok()) return removed.status();
  if (context.flags.json) {
    std::cout << ToText({{"name", name}, {"objects", *removed}}) << std::endl;
  } else {
    std::cout << "removed " << base::Printable(name) << (*removed > 1 ? absl::StrCat(": ", *removed, " objects") : "")
              << std::endl;
  }
  return absl::OkStatus();
}

absl::Status RemoveByPrefix(const CommandContext& context, const std::string& prefix) {
  const auto removed = RemovePrefix(context.client, prefix);
  if (!removed.ok()) return removed.status();
  if (context.flags.json) {
    std::cout << ToText({{"prefix", prefix}, {"objects", *removed}}) << "\n";
  } else {
    std::cout << "removed " << *removed << (*removed == 1 ? " object" : " objects") << "\n";
  }
  return absl::OkStatus();
}

absl::Status Remove(const CommandContext& context, const RemoveFlags& own) {
  if (!own.prefix.empty()) return RemoveByPrefix(context, own.prefix);
  return ForEach(context, own.names, "remove", [&](const std::string& name) { return RemoveOne(context, name); });
}

}  // namespace

Command RemoveCommand() {
  return CommandWithDaemon(
      {"rm", "delete objects on all nodes, without asking; a folder with its files", "tok rm release"}, AddRemove,
      Remove);
}

}  // namespace tokamak::cli
