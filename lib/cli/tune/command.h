// `tok tune`: its flags, output and file.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cli/common/undo.h"
#include "lib/cli/tune/holder.h"
#include "lib/cli/tune/link.h"
#include "tokamak/client.h"

namespace tokamak::cli::tune {

struct CommandFlags {
  std::string peer;
  std::string peer_socket;
  bool serve = false;
  uint32_t peer_node = 0;  // of tok up; 0: not given
  std::string budget = "10s";
  std::string largest;
  std::string output = "policy.json";
};

void AddCommand(CLI::App& app, CommandFlags& flags);

// kInvalidArgument names the flag.
absl::StatusOr<LinkSettings> SettingsOf(const CommandFlags& flags);

// After an error `undo` has taken everything back.
absl::Status RunCommand(const CommandFlags& flags, const LinkSettings& settings, Client& puller, Holder& holder,
                        Undo& undo, bool json);

absl::Status RunServe(Client& client, Undo& undo, bool json);

std::string FormatTimes(const LinkTimes& times);

}  // namespace tokamak::cli::tune
