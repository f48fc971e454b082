// The commands of tok that talk to one daemon: put, get, ls, stat, rm, nodes. Each prints for people, or JSON.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/client/client.h"
#include "lib/client/protocol.h"

namespace tokamak::cli {

// What all commands share.
struct CommandContext {
  client::Client& client;
  bool json = false;
};

absl::Status Put(const CommandContext& context, const std::vector<std::string>& paths, const std::string& as);

struct GetFlags {
  std::string name;
  std::string output;
  base::Duration timeout = base::Seconds(30);
  client::Protocol protocol = client::Protocol::kAuto;
};
absl::Status Get(const CommandContext& context, const GetFlags& flags);

absl::Status List(const CommandContext& context);

// With a name: one object. Without: the numbers of the node.
absl::Status Stat(const CommandContext& context, const std::string& name);

// A directory's object takes the files that it lists along.
absl::Status Remove(const CommandContext& context, const std::vector<std::string>& names);

absl::Status Nodes(const CommandContext& context);

}  // namespace tokamak::cli
