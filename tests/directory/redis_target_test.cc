#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "lib/directory/redis/server/target.h"

namespace tokamak::directory::redis {
namespace {

// "KIND places master user database tls", what is empty left out.
std::string Said(const std::string& text) {
  const absl::StatusOr<Target> target = Target::Parse(text);
  if (!target.ok()) return std::string(target.status().message());
  const char* const kinds[] = {"server", "sentinel", "cluster"};
  std::string said = kinds[static_cast<size_t>(target->kind)];
  for (const Place& place : target->places) absl::StrAppend(&said, " ", place.ToString());
  if (!target->master.empty()) absl::StrAppend(&said, " master ", target->master);
  if (!target->user.empty()) absl::StrAppend(&said, " user ", target->user);
  if (target->database != 0) absl::StrAppend(&said, " database ", target->database);
  if (target->tls) absl::StrAppend(&said, " tls");
  return said;
}

TEST(RedisTargetTest, EachFormNamesItsServers) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"redis@127.0.0.1:7", "server 127.0.0.1:7"},
      {"redis@db1.example.com", "server db1.example.com:6379"},
      {"redis@unix:/run/redis.sock", "server unix:/run/redis.sock"},
      {"redis://db1", "server db1:6379"},
      {"redis://db1:7/", "server db1:7"},
      {"redis://[::1]:7/3", "server [::1]:7 database 3"},
      {"redis://[fe80::1%eth0]", "server [fe80::1%eth0]:6379"},
      {"rediss://tok@db1/15", "server db1:6379 user tok database 15 tls"},
      {"unix:///run/redis.sock", "server unix:/run/redis.sock"},
      {"unix://tok@/run/redis.sock?db=2", "server unix:/run/redis.sock user tok database 2"},
      {"sentinel://s1,s2:7,10.0.0.3/mymaster", "sentinel s1:26379 s2:7 10.0.0.3:26379 master mymaster"},
      {"sentinel+tls://tok@s1/mymaster/4", "sentinel s1:26379 master mymaster user tok database 4 tls"},
      {"cluster://c1,c2:7", "cluster c1:6379 c2:7"},
      {"cluster+tls://tok@c1", "cluster c1:6379 user tok tls"},
  };
  for (const auto& [text, said] : cases) {
    EXPECT_EQ(Said(text), said) << text;
    EXPECT_TRUE(Target::IsMeantBy(text)) << text;
  }
}

TEST(RedisTargetTest, AMalformedTargetIsReportedInOneLineWithAnExample) {
  for (const char* text : {"redis@",
                           "redis@127.0.0.1:",
                           "redis@127.0.0.1:0",
                           "redis@127.0.0.1:65536",
                           "redis@unix:",
                           "redis@[::1",
                           "redis@1.2.3:4",
                           "redis@1.2.3.256",
                           "redis@two words",
                           "redis://db1/x",
                           "redis://db1/1/2",
                           "redis://db1/65536",
                           "redis://a,b",
                           "redis://@db1",
                           "unix://",
                           "unix:///s?db=x",
                           "sentinel://s1",
                           "sentinel://s1/",
                           "sentinel:///m",
                           "cluster://",
                           "cluster://c1/1",
                           "cluster://c1,,c2",
                           "redis"}) {
    const absl::Status status = Target::Parse(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_TRUE(absl::StrContains(status.message(), "://")) << status;
    EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
  }
  const std::vector<std::string> seventeen(Target::kMaxPlaces + 1, "s");
  EXPECT_TRUE(absl::StrContains(Said(absl::StrCat("cluster://", absl::StrJoin(seventeen, ","))), "17 hosts"));
}

TEST(RedisTargetTest, APasswordIsRefusedAndNotRepeated) {
  for (const char* text :
       {"redis://tok:Hush@db1", "redis://:Hush@db1", "unix://tok:Hush@/s", "sentinel://t:Hush@s/m"}) {
    const std::string said = Said(text);
    EXPECT_TRUE(absl::StrContains(said, "--redis-password-file")) << said;
    EXPECT_FALSE(absl::StrContains(said, "Hush")) << said;
  }
}

}  // namespace
}  // namespace tokamak::directory::redis
