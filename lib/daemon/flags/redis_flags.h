// The flags of tokd that are about a directory in Redis: --redis-...
//
// Passwords stand in files, or in the environment under names that are no flags' (kRedisVariables):
// what a flag says can be read on the command line and by --print-config.
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

// As given, before it is checked.
struct RedisTexts {
  std::string prefix = "tokamak";
  std::string password_file, sentinel_user, sentinel_password_file;
  directory::redis::TlsOptions tls;
  bool no_verify = false;
};
void AddRedisFlags(CLI::App& app, RedisTexts& texts);

// Adds what flags and environment say to `options`, whose target is known, and checks it. Each error
// begins with the flag that is wrong.
absl::Status TakeRedisFlags(const RedisTexts& texts, directory::redis::Options& options);

// Where the directory is not in Redis: says which flag is out of place.
absl::Status CheckNoRedisFlags(const RedisTexts& texts);

}  // namespace tokamak::daemon
