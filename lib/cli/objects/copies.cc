#include "lib/cli/objects/copies.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/base/time.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "lib/cli/objects/files.h"
#include "lib/cli/objects/for_each.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace {

struct CopiesFlags {
  std::vector<std::string> names;
  base::Duration timeout = base::Seconds(30);
  std::string to;
};

void AddNames(CLI::App& command, CopiesFlags& own) {
  command.add_option("name", own.names, "names or 40-digit ids; a folder with its files")->required();
}

void AddNamesAndTimeout(CLI::App& command, CopiesFlags& own) {
  AddNames(command, own);
  AddDuration(command, "--timeout", own.timeout, "how long to wait for each to appear and arrive");
}

void AddPush(CLI::App& push, CopiesFlags& own) {
  AddNamesAndTimeout(push, own);
  push.add_option("--to", own.to, "that node, as tok nodes lists it")->required();
}

using Work = absl::FunctionRef<std::vector<Status>(const std::vector<ObjectId>& ids)>;

// Returns the first failure, with the object's name.
absl::Status DoWith(const std::vector<std::string>& names, Work work) {
  std::vector<ObjectId> ids;
  ids.reserve(names.size());
  for (const std::string& name : names) ids.push_back(IdOf(name));
  const std::vector<Status> statuses = work(ids);
  for (size_t i = 0; i < statuses.size(); ++i) {
    const absl::Status status = AsAbsl(statuses[i]);
    if (!status.ok()) return absl::Status(status.code(), absl::StrCat(names[i], ": ", status.message()));
  }
  return absl::OkStatus();
}

// The object first: it may be waited for, and shows whether it is a folder's. Returns their number.
absl::StatusOr<size_t> DoWithAllOf(Client& client, const std::string& name, Work work) {
  if (absl::Status status = DoWith({name}, work); !status.ok()) return status;
  const auto below = NamesBelow(client, name);
  if (!below.ok()) return below.status();
  if (absl::Status status = DoWith(*below, work); !status.ok()) return status;
  return 1 + below->size();
}

absl::Status DoWithEach(const CommandContext& context, const CopiesFlags& own, const char* verb,
                        const std::string& done, Work work) {
  return ForEach(context, own.names, verb, [&](const std::string& name) -> absl::Status {
    const auto objects = DoWithAllOf(context.client, name, work);
    if (!objects.ok()) return objects.status();
    if (context.flags.json) {
      std::cout << ToText({{"name", name}, {"objects", *objects}}) << std::endl;
    } else {
      std::cout << done << " " << base::Printable(name)
                << (*objects > 1 ? absl::StrCat(": ", *objects, " objects") : "") << std::endl;
    }
    return absl::OkStatus();
  });
}

absl::Status Prefetch(const CommandContext& context, const CopiesFlags& own) {
  return DoWithEach(context, own, "prefetch", "prefetched", [&](const std::vector<ObjectId>& ids) {
    return context.client.Prefetch(ids, AsTimeout(own.timeout));
  });
}

absl::Status Pin(const CommandContext& context, const CopiesFlags& own) {
  return DoWithEach(context, own, "pin", "pinned",
                    [&](const std::vector<ObjectId>& ids) { return context.client.Pin(ids, AsTimeout(own.timeout)); });
}

absl::Status Unpin(const CommandContext& context, const CopiesFlags& own) {
  return DoWithEach(context, own, "unpin", "unpinned", [&](const std::vector<ObjectId>& ids) {
    std::vector<Status> statuses;
    statuses.reserve(ids.size());
    for (const ObjectId& id : ids) statuses.push_back(context.client.Unpin(id));
    return statuses;
  });
}

absl::Status Push(const CommandContext& context, const CopiesFlags& own) {
  return DoWithEach(
      context, own, "push", absl::StrCat("pushed to ", base::Printable(own.to)),
      [&](const std::vector<ObjectId>& ids) { return context.client.Push(ids, own.to, AsTimeout(own.timeout)); });
}

}  // namespace

Command PrefetchCommand() {
  return CommandWithDaemon(
      {"prefetch", "bring objects to this node, before they are needed there", "tok --node 2 prefetch release"},
      AddNamesAndTimeout, Prefetch);
}

Command PinCommand() {
  return CommandWithDaemon({"pin",
                            "bring objects to this node and keep them there: they are not evicted before unpin, rm or "
                            "the end of its daemon",
                            "tok pin release"},
                           AddNamesAndTimeout, Pin);
}

Command UnpinCommand() {
  return CommandWithDaemon({"unpin", "let objects of this node be evicted again", "tok unpin release"}, AddNames,
                           Unpin);
}

Command PushCommand() {
  return CommandWithDaemon({"push", "bring objects to another node", "tok push release --to node-2"}, AddPush, Push);
}

}  // namespace tokamak::cli
