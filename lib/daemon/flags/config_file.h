// ConfigFile lets CLI11 read and write tokd's flags as a file: one JSON object, with comments (//
// and /* */). A key is a flag without its dashes:
//
//  {
//    "listen": "10.0.0.1:7000",            // a text, as on the command line
//    "device": ["ibv:mlx5_0", "ibv:mlx5_1"],
//    "engines": 1,
//    "evacuate": true                      // a flag without a value
//  }
//
// The command line overrides the environment (TOKD_MEMORY=64GiB), which overrides the file
// (docs/configuration.md).
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

  // Returns the file's flags but the environment's. Throws CLI::ConfigError with one line.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // Returns all flags with a value. Ignores CLI11's last three arguments.
  std::string to_config(const CLI::App* app, bool, bool, std::string) const override;

 private:
  const CLI::App& app_;
};

// Returns TOKD_CHUNK_SIZE for "chunk-size".
std::string VariableOf(const std::string& flag);

// Lets the environment give each flag that a file may give. kInvalidArgument: a TOKD_ name that is
// no flag, nor in `others`.
absl::Status ReadEnvironment(CLI::App& app, absl::Span<const char* const> others);

// Returns the keys in which two results of to_config differ.
std::vector<std::string> ChangedKeys(const std::string& before, const std::string& after);

}  // namespace tokamak::daemon
