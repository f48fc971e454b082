#include "lib/daemon/flags/redis_flags.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tokamak::daemon {
namespace {

using directory::redis::Secret;
using directory::redis::Target;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

struct Given {
  const char* name;
  bool is_given;
};

absl::Status CheckNone(const std::vector<Given>& flags, const char* goes_with) {
  for (const Given& flag : flags) {
    if (flag.is_given)
      return absl::InvalidArgumentError(absl::StrCat(flag.name, ": goes with --directory ", goes_with));
  }
  return absl::OkStatus();
}

std::vector<Given> TlsFlags(const RedisTexts& texts) {
  return {{"--redis-tls-ca", !texts.tls.ca.empty()},
          {"--redis-tls-cert", !texts.tls.cert.empty()},
          {"--redis-tls-key", !texts.tls.key.empty()},
          {"--redis-tls-name", !texts.tls.name.empty()},
          {"--redis-tls-no-verify", texts.no_verify}};
}

std::vector<Given> SentinelFlags(const RedisTexts& texts) {
  return {{"--redis-sentinel-user", !texts.sentinel_user.empty()},
          {"--redis-sentinel-password-file", !texts.sentinel_password_file.empty()},
          {kSentinelPasswordVariable, !Variable(kSentinelPasswordVariable).empty()}};
}

absl::Status TakePassword(const char* flag, const std::string& file, const char* variable, Secret& secret) {
  const std::string text = Variable(variable);
  if (!file.empty() && !text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " and ", variable, " are both given: leave one out"));
  }
  if (!file.empty()) secret = Secret::FromFile(file);
  if (!text.empty()) secret = Secret::FromText(text);
  return absl::OkStatus();
}

}  // namespace

void AddRedisFlags(CLI::App& app, RedisTexts& texts) {
  app.add_option("--redis-prefix", texts.prefix,
                 "of all keys in Redis: clusters that share a server have different ones; of A-Z a-z 0-9 . _ -")
      ->capture_default_str();
  app.add_option("--redis-password-file", texts.password_file,
                 "file with the password at Redis; or TOKD_REDIS_PASSWORD in the environment");
  app.add_option("--redis-sentinel-user", texts.sentinel_user, "user at the Sentinels, where they have users");
  app.add_option("--redis-sentinel-password-file", texts.sentinel_password_file,
                 "file with the password at the Sentinels; or TOKD_REDIS_SENTINEL_PASSWORD in the environment");
  app.add_option(
      "--redis-tls-ca", texts.tls.ca,
      "PEM file, or folder, of the authorities that sign Redis servers' certificates; the system's unless given");
  app.add_option("--redis-tls-cert", texts.tls.cert,
                 "PEM file with this node's certificate, for a Redis that asks for one");
  app.add_option("--redis-tls-key", texts.tls.key, "PEM file with the key of --redis-tls-cert");
  app.add_option("--redis-tls-name", texts.tls.name,
                 "name that stands in the Redis servers' certificates; the host's in --directory unless given");
  app.add_flag("--redis-tls-no-verify", texts.no_verify, "believe any Redis server, whatever certificate it shows");
}

absl::Status TakeRedisFlags(const RedisTexts& texts, directory::redis::Options& options) {
  absl::Status status;
  if (!options.target.tls) status.Update(CheckNone(TlsFlags(texts), "rediss://, sentinel+tls:// or cluster+tls://"));
  if (options.target.kind != Target::Kind::kSentinel) status.Update(CheckNone(SentinelFlags(texts), "sentinel://"));
  status.Update(TakePassword("--redis-password-file", texts.password_file, kPasswordVariable, options.password));
  status.Update(TakePassword("--redis-sentinel-password-file", texts.sentinel_password_file, kSentinelPasswordVariable,
                             options.sentinel.password));
  if (!status.ok()) return status;
  if (!options.target.user.empty() && !options.password.is_given()) {
    return absl::InvalidArgumentError(absl::StrCat("--directory: user ", options.target.user,
                                                   " needs a password: give --redis-password-file, or ",
                                                   kPasswordVariable, " in the environment"));
  }
  options.sentinel.user = texts.sentinel_user;
  options.tls = texts.tls;
  options.tls.verify = !texts.no_verify;
  options.prefix = texts.prefix;
  return directory::redis::RedisDirectory::Check(options);
}

absl::Status CheckNoRedisFlags(const RedisTexts& texts) {
  std::vector<Given> flags = {{"--redis-prefix", texts.prefix != RedisTexts().prefix},
                              {"--redis-password-file", !texts.password_file.empty()},
                              {kPasswordVariable, !Variable(kPasswordVariable).empty()}};
  for (const Given& flag : TlsFlags(texts)) flags.push_back(flag);
  for (const Given& flag : SentinelFlags(texts)) flags.push_back(flag);
  return CheckNone(flags, "redis://");
}

}  // namespace tokamak::daemon
