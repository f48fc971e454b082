#include "lib/cli/copies.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/cli/as_absl.h"
#include "lib/cli/files.h"
#include "lib/cli/output.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace {

std::vector<ObjectId> IdsOf(const std::vector<std::string>& names) {
  std::vector<ObjectId> ids;
  ids.reserve(names.size());
  for (const std::string& name : names) ids.push_back(IdOf(name));
  return ids;
}

// Of several objects the first that failed, by its name.
absl::Status FirstFailure(const std::vector<std::string>& names, const std::vector<Status>& statuses) {
  for (size_t i = 0; i < statuses.size(); ++i) {
    const absl::Status status = AsAbsl(statuses[i]);
    if (!status.ok()) return absl::Status(status.code(), absl::StrCat(names[i], ": ", status.message()));
  }
  return absl::OkStatus();
}

std::vector<Status> Bring(Client& client, const std::string& command, const CopiesFlags& flags, Timeout timeout,
                          const std::vector<std::string>& names) {
  if (command == "pin") return client.Pin(IdsOf(names), timeout);
  if (command == "push") return client.Push(IdsOf(names), flags.to, timeout);
  if (command == "prefetch") return client.Prefetch(IdsOf(names), timeout);
  std::vector<Status> statuses;
  for (const std::string& name : names) statuses.push_back(client.Unpin(IdOf(name)));
  return statuses;
}

// The object itself first: it may be waited for, and then says whether it is a folder's.
absl::StatusOr<size_t> BringOne(Client& client, const std::string& command, const CopiesFlags& flags, Timeout timeout,
                                const std::string& name) {
  const std::vector<std::string> itself = {name};
  absl::Status status = FirstFailure(itself, Bring(client, command, flags, timeout, itself));
  if (!status.ok()) return status;
  const auto below = NamesBelow(client, name);
  if (!below.ok()) return below.status();
  status = FirstFailure(*below, Bring(client, command, flags, timeout, *below));
  if (!status.ok()) return status;
  return 1 + below->size();
}

std::string WhatWasDone(const std::string& command, const CopiesFlags& flags) {
  if (command == "pin") return "pinned";
  if (command == "unpin") return "unpinned";
  if (command == "push") return absl::StrCat("pushed to ", base::Printable(flags.to));
  return "prefetched";
}

}  // namespace

void AddCopiesCommands(CLI::App& app, CopiesFlags& flags) {
  const auto add = [&](const char* name, const char* about, const char* example) {
    CLI::App* const command = NewCommand(app, name, about, example);
    command->add_option("name", flags.names, "names or 40-digit ids; a folder with its files")->required();
    return command;
  };
  const auto add_timeout = [&](CLI::App* command) {
    AddDuration(*command, "--timeout", flags.timeout, "how long to wait for each to appear and arrive");
  };
  add_timeout(
      add("prefetch", "bring objects to this node, before they are needed there", "tok --node 2 prefetch release"));
  add_timeout(add("pin",
                  "bring objects to this node and keep them there: they are not evicted before unpin, rm or the "
                  "end of its daemon",
                  "tok pin release"));
  add("unpin", "let objects of this node be evicted again", "tok unpin release");
  CLI::App* const push = add("push", "bring objects to another node", "tok push release --to node-2");
  add_timeout(push);
  push->add_option("--to", flags.to, "that node, as tok nodes lists it")->required();
}

bool IsCopiesCommand(const std::string& command) {
  return command == "prefetch" || command == "pin" || command == "unpin" || command == "push";
}

absl::Status RunCopiesCommand(const CommandContext& context, const std::string& command, const CopiesFlags& flags) {
  const auto work = [&](const std::string& name) -> absl::Status {
    const auto objects = BringOne(context.client, command, flags, AsTimeout(flags.timeout), name);
    if (!objects.ok()) return objects.status();
    if (context.json) {
      std::cout << ToText({{"name", name}, {"objects", *objects}}) << std::endl;
    } else {
      std::cout << WhatWasDone(command, flags) << " " << base::Printable(name)
                << (*objects > 1 ? absl::StrCat(": ", *objects, " objects") : "") << std::endl;
    }
    return absl::OkStatus();
  };
  return ForEach(context, flags.names, command.c_str(), work);
}

}  // namespace tokamak::cli
