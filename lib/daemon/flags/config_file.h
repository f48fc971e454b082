// ConfigFile is how CLI11 reads and writes tokd's flags as a file: one JSON object, in which
// comments (// and /* */) may stand. A key is a flag without its dashes:
//
//   {
//     "listen": "10.0.0.1:7000",            // a text, as on the command line
//     "device": ["ibv:mlx5_0", "ibv:mlx5_1"],
//     "memory": "64GiB",
//     "engines": 1,
//     "evacuate": true                      // a flag without a value
//   }
//
// The command line goes before the environment (TOKD_MEMORY=64GiB), and that before the file.
// docs/configuration.md is for who writes one.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace tokamak::daemon {

class ConfigFile final : public CLI::Config {
 public:
  // Bytes.
  static constexpr size_t kMax = 1 << 20;

  // `app` must outlive it.
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // What the file says, but for what the environment has too. Throws CLI::ConfigError, which says in
  // one line what is wrong.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // All flags that have a value, as such a file. The last three arguments are CLI11's and not looked
  // at.
  std::string to_config(const CLI::App* app, bool, bool, std::string) const override;

 private:
  const CLI::App& app_;
};

// The environment's name of a flag: "chunk-size" is TOKD_CHUNK_SIZE.
std::string VariableOf(const std::string& flag);

// Lets the environment give each flag of `app` that a file may give. kInvalidArgument where it has a
// TOKD_ that is no flag, nor one of `others`.
absl::Status ReadEnvironment(CLI::App& app, absl::Span<const char* const> others);

// The keys in which two files that to_config made differ.
std::vector<std::string> ChangedKeys(const std::string& before, const std::string& after);

}  // namespace tokamak::daemon
