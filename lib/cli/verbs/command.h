// `tok verbs`: its flags, and their meaning for the program that it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "lib/verbs/kernel/program/options.h"

namespace tokamak::cli::verbs {

struct CommandFlags {
  std::vector<std::string> addresses;
  uint32_t devices = 1;
  std::string loss;
  std::string corrupt;
  std::string delay;
  uint64_t seed = 1;
  std::string error_at;
  std::string port_down;
  std::string pcap;
  bool explain = false;
  bool counters = false;
  bool shared_memory = false;
  std::string library;
  std::vector<std::string> command;
};

void AddCommand(CLI::App& app, CommandFlags& flags);

// kInvalidArgument names the flag.
absl::StatusOr<tokamak::verbs::kernel::Options> OptionsOf(const CommandFlags& flags);

// Execs the command. Returns only on failure, as shells do: 2, 127 for no such program, 126 if it
// cannot be run.
int RunCommand(const CommandFlags& flags, bool json);

}  // namespace tokamak::cli::verbs
