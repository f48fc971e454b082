// `tok verbs`: its flags, and what they mean for the program that it runs.
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

// What the program is told; kInvalidArgument names the flag.
absl::StatusOr<tokamak::verbs::kernel::Options> OptionsOf(const CommandFlags& flags);

// Becomes the command, so that its exit code, and the signal that ends it, are its own. Returns an
// exit code only where that fails: 2, or 127 where there is no such program and 126 where it cannot
// be run, as shells have it.
int RunCommand(const CommandFlags& flags, bool json);

}  // namespace tokamak::cli::verbs
