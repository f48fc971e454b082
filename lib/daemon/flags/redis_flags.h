// The flags of tokd for a directory in Redis: --redis-...
//
// Passwords come from files, or from variables that are no flags: --print-config and ps show flags.
#pragma once

#include <array>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "lib/directory/redis/redis_directory.h"

namespace tokamak::daemon {

constexpr char kPasswordVariable[] = "TOKD_REDIS_PASSWORD";
constexpr char kSentinelPasswordVariable[] = "TOKD_REDIS_SENTINEL_PASSWORD";
constexpr std::array<const char*, 2> kRedisVariables = {kPasswordVariable, kSentinelPasswordVariable};

// Unchecked.
struct RedisTexts {
  std::string prefix = "tokamak";
  std::string password_file, sentinel_user, sentinel_password_file;
  directory::redis::TlsOptions tls;
  bool no_verify = false;
};
void AddRedisFlags(CLI::App& app, RedisTexts& texts);

// Adds flags and environment to `options`, whose target is set. An error begins with the flag.
absl::Status TakeRedisFlags(const RedisTexts& texts, directory::redis::Options& options);

// With another directory; an error names the flag.
absl::Status CheckNoRedisFlags(const RedisTexts& texts);

}  // namespace tokamak::daemon
