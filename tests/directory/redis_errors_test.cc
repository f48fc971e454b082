// Errors for people when Redis cannot keep the directory: one line that says what to do. They come
// from real servers where possible, else from a played one.
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/directory/redis/server/remedies.h"
#include "tests/directory/certificates.h"
#include "tests/directory/fake_redis.h"
#include "tests/directory/redis_fixture.h"
#include "tests/directory/redis_group.h"

namespace tokamak::directory::redis {
namespace {

class RedisErrorsTest : public testing::Test {
 protected:
  // Returns the error of a Join, repeated until it has `part`; it is one line.
  std::string TroubleWith(const Options& options, const std::string& part) {
    auto directory = RedisDirectory::Open(loop_, options);
    if (!directory.ok()) return std::string(directory.status().message());
    std::string said;
    const base::Time limit = loop_.Now() + kPatience;
    while (!absl::StrContains(said, part) && loop_.Now() < limit) {
      std::optional<absl::Status> status;
      const base::Pending call = (*directory)->Join(Request(), kPatience, [&](const absl::StatusOr<JoinReply>& joined) {
        status = joined.status();
      });
      loop_.RunUntil([&] { return status.has_value(); }, limit);
      said = status.value_or(absl::InternalError("no answer")).ToString();
      loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(5));
    }
    EXPECT_TRUE(absl::StrContains(said, part)) << said << "\n  lacks: " << part;
    EXPECT_FALSE(absl::StrContains(said, "\n")) << said;
    return said;
  }
  std::string TroubleWith(const Target& target, const std::string& part) {
    Options options;
    options.target = target;
    return TroubleWith(options, part);
  }
  std::string TroubleWith(const std::string& target, const std::string& part) {
    return TroubleWith(*Target::Parse(target), part);
  }

  static JoinRequest Request() {
    JoinRequest request;
    request.node = {"a", 1, {"10.0.0.1:7000"}, "soft", 1};
    request.lease = kLong;
    request.grace = kLong;
    return request;
  }

  os::EpollLoop loop_;
};

TEST_F(RedisErrorsTest, PasswordErrorsNameTheRemedy) {
  RedisServer with({"--requirepass", "secret"});
  TroubleWith(with.target(), "NOAUTH Authentication required.; it asks for a password: give --redis-password-file");
  Options options;
  options.target = with.target();
  options.password = Secret::FromText("Hush");
  const std::string wrong = TroubleWith(options, "WRONGPASS");
  EXPECT_TRUE(absl::StrContains(wrong, "correct the user in --directory, or the password")) << wrong;
  EXPECT_FALSE(absl::StrContains(wrong, "Hush")) << wrong;
  options.password = Secret::FromText("secret");
  TroubleWith(options, "OK");

  RedisServer without;
  options.target = without.target();
  TroubleWith(options, "the server wants no password: give none");
}

TEST_F(RedisErrorsTest, AWorldReadablePasswordFileIsReported) {
  const testing_support::ShortFolder folder;
  const std::string file = folder.Path("password");
  std::ofstream(file) << "secret";
  const Secret secret = Secret::FromFile(file);
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  EXPECT_EQ(secret.Exposure(), "");
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_TRUE(absl::StrContains(secret.Exposure(), absl::StrCat("may read the password file ", file)));
  ASSERT_EQ(chmod(file.c_str(), 0602), 0);
  EXPECT_TRUE(absl::StrContains(secret.Exposure(), "may change"));
  EXPECT_EQ(Secret::FromText("secret").Exposure(), "");
}

TEST_F(RedisErrorsTest, APasswordIsReadAnewFromItsFileForEachConnection) {
  const testing_support::ShortFolder folder;
  const std::string file = folder.Path("password");
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  Options options;
  options.password = Secret::FromFile(file);
  RedisServer server({"--requirepass", "first"});
  options.target = server.target();
  EXPECT_EQ(RedisDirectory::Open(loop_, options).status().message(),
            absl::StrCat("cannot read the password file ", file, ": No such file or directory"));
  write("");
  EXPECT_TRUE(absl::StrContains(RedisDirectory::Open(loop_, options).status().message(), "is empty"));
  write(std::string(Secret::kMax + 1, 'x'));
  EXPECT_TRUE(absl::StrContains(RedisDirectory::Open(loop_, options).status().message(), "more than 4096 bytes"));
  write("first\n");
  ConnectionOptions line;
  line.credentials.password = options.password;
  Line by_hand(loop_, server.target(), line);
  const auto ask = [&](const Command& command) {
    std::optional<absl::Status> status;
    const base::Pending call = by_hand.connection().Call(
        command, kPatience, [&](const absl::StatusOr<Reply>& reply) { status = reply.status(); });
    loop_.RunUntil([&] { return status.has_value(); }, loop_.Now() + kPatience);
    return status->ok();
  };
  const base::Time limit = loop_.Now() + kPatience;
  while (!ask({"PING"}) && loop_.Now() < limit)
    loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(5));
  auto directory = *RedisDirectory::Open(loop_, options);
  const uint64_t before = directory->connection_attempts();
  ASSERT_TRUE(ask({"CONFIG", "SET", "requirepass", "second"}));
  write("second\n");
  ASSERT_TRUE(ask({"CLIENT", "KILL", "TYPE", "normal"}));  // all but who says so
  ASSERT_TRUE(loop_.RunUntil([&] { return directory->connection_attempts() > before; }, limit));
  std::optional<absl::Status> status;
  const base::Pending call =
      directory->Join(Request(), kPatience, [&](const absl::StatusOr<JoinReply>& joined) { status = joined.status(); });
  loop_.RunUntil([&] { return status.has_value(); }, limit);
  EXPECT_EQ(status, absl::OkStatus());
}

// The rule of docs/redis.md, word for word.
std::string RuleOfTheDocument() {
  std::ifstream file("docs/redis.md");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "ACL SETUSER tokamak ")) return line;
  }
  return {};
}

class AclTest : public RedisDirectoryTest {
 protected:
  std::unique_ptr<RedisDirectory> OpenAsUser() {
    Options options;
    options.target = server_.target();
    options.target.user = "tokamak";
    options.password = Secret::FromText("PASSWORD");
    return *RedisDirectory::Open(loop_, options);
  }
  void SetUser(const std::string& rule) {
    const Reply reply = AskServer(absl::StrSplit(rule, ' ', absl::SkipEmpty()));
    ASSERT_EQ(reply.text, "OK") << rule;
  }
};

TEST_F(AclTest, TheDocumentedUserHasExactlyTheNeededRights) {
  const std::string rule = RuleOfTheDocument();
  ASSERT_NE(rule, "");
  SetUser(rule);
  directory_ = OpenAsUser();
  AwaitServer();
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  const auto waits = StartLocate(*directory_, "y", kPatience, "b");
  ASSERT_TRUE(RunUntil([&] { return Channels() == 1; }));
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  ASSERT_TRUE(Announce(Version("y"), "a").ok());
  ASSERT_TRUE(RunUntil([&] { return waits->answered; }));
  EXPECT_TRUE(waits->result.ok()) << waits->result.status();
  ASSERT_TRUE(Locate("x", "b").ok());
  EXPECT_EQ(*Verify("a", {Version("x"), Version("z")}), Places{1});
  EXPECT_EQ(Held("a").status(), absl::OkStatus());
  EXPECT_TRUE(Withdraw(Version("y"), "b").ok());
  EXPECT_TRUE(Return("a", true).ok());
  EXPECT_TRUE(Delete("x").ok());
  LetFallSilent("a");
  EXPECT_TRUE(Join("a", 2).ok());

  ConnectionOptions options;
  options.credentials = {"tokamak", Secret::FromText("PASSWORD")};
  Line line(loop_, server_.target(), options);
  RunUntil([&] { return Ask(line.connection(), {"PING"}).text == "PONG"; });
  for (const Command& command : std::vector<Command>{{"FLUSHALL"}, {"CONFIG", "GET", "*"}, {"GET", "other:key"}}) {
    absl::Status status = Run<absl::StatusOr<Reply>>([&](auto done) {
                            return line.connection().Call(command, kPatience, done);
                          }).status();
    EXPECT_TRUE(absl::StrContains(status.message(), "NOPERM")) << command[0] << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "give the user the ACL rule of docs/redis.md")) << status;
  }
}

TEST_F(AclTest, AMissingRightIsAnErrorThatNamesTheRule) {
  const std::string rule = RuleOfTheDocument();
  for (const char* lacks : {"-info", "-evalsha", "-hget", "resetkeys"}) {
    SetUser(rule);
    SetUser(absl::StrCat("ACL SETUSER tokamak ", lacks));
    directory_ = OpenAsUser();
    absl::Status status;
    RunUntil([&] {
      status = Join("a").status();
      return absl::StrContains(status.message(), "ACL rule of docs/redis.md");
    });
    EXPECT_TRUE(absl::StrContains(status.message(), "ACL rule of docs/redis.md")) << lacks << ": " << status;
  }
}

TEST_F(RedisErrorsTest, OtherKindsOfServersAreReported) {
  RedisOnPort cluster(RedisRole::kServer,
                      {"--save", "", "--cluster-enabled", "yes", "--cluster-port", absl::StrCat(FreePort())});
  RedisOnPort master(RedisRole::kServer, {"--save", ""});
  RedisOnPort replica(RedisRole::kServer, {"--save", "", "--replicaof", "127.0.0.1", absl::StrCat(master.port())});
  RedisOnPort sentinel(RedisRole::kSentinel, {});
  const auto at = [](const RedisOnPort& server) { return absl::StrCat("127.0.0.1:", server.port()); };

  TroubleWith("redis://" + at(cluster), "it is part of a Redis Cluster: write --directory cluster://");
  TroubleWith("cluster://" + at(cluster), "CLUSTERDOWN Hash slot not served; the Redis Cluster lacks a master");
  TroubleWith("cluster://" + at(master), "it is no part of a Redis Cluster: write --directory redis://");
  TroubleWith("redis://" + at(replica),
              absl::StrCat("it is a read-only replica of ", at(master), ": name that one, or the Sentinels"));
  TroubleWith("redis://" + at(sentinel), "a Sentinel listens there: write --directory sentinel://");
  TroubleWith("sentinel://" + at(sentinel) + "/nobody", "No such master with that name; correct the master's name");
  TroubleWith("sentinel://" + at(master) + "/nobody", "1 of 1 Sentinels do not answer");
  TroubleWith("redis://" + at(master) + "/16", "DB index is out of range; raise its databases");
  TroubleWith("redis://no-such-host.invalid", "correct the host's name in --directory, or its entry in DNS");
  TroubleWith("redis://127.0.0.1:1", "Connection refused; start it, or correct the address");

  ASSERT_TRUE(master.Ask({"CONFIG", "SET", "min-replicas-to-write", "2"}).ok());
  TroubleWith("redis://" + at(master), "NOREPLICAS");
  ASSERT_TRUE(master.Ask({"CONFIG", "SET", "min-replicas-to-write", "0"}).ok());
  TroubleWith("redis://" + at(master), "OK");
}

TEST_F(RedisErrorsTest, AScriptThatBlocksTheServerIsReported) {
  RedisOnPort server(RedisRole::kServer, {"--save", "", "--busy-reply-threshold", "1"});
  Line line(loop_, *Target::Parse(absl::StrCat("redis://127.0.0.1:", server.port())));
  bool started = false;
  base::Pending endless;
  const base::Pending ping = line.connection().Call({"PING"}, kPatience, [&](const auto&) {
    started = true;
    endless = line.connection().Call({"EVAL", "while true do end", "0"}, kPatience, [](const auto&) {});
  });
  loop_.RunUntil([&] { return started; }, loop_.Now() + kPatience);
  TroubleWith(absl::StrCat("redis://127.0.0.1:", server.port()),
              "is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.; a script of "
              "another program blocks it: end that by redis-cli SCRIPT KILL");
  ASSERT_TRUE(server.Ask({"SCRIPT", "KILL"}).ok());
  TroubleWith(absl::StrCat("redis://127.0.0.1:", server.port()), "OK");
}

TEST_F(RedisErrorsTest, RareErrorsAreReported) {
  FakeRedis protects(loop_, [](const Command&) { return ""; });
  protects.TurnAway("-DENIED Redis is running in protected mode because protected mode is enabled\r\n");
  TroubleWith(protects.target(), "set its password (requirepass), or what it listens on (bind)");
  FakeRedis full(loop_, [](const Command&) { return ""; });
  full.TurnAway("-ERR max number of clients reached\r\n");
  TroubleWith(full.target(), "ERR max number of clients reached; raise its maxclients");

  const std::vector<std::pair<std::string, std::string>> infos = {
      {FakeRedis::Bulk("redis_version:4.0.9\r\nredis_mode:standalone\r\nrole:master\r\n"),
       "it is Redis 4.0.9: the directory needs Redis 5 or later"},
      {FakeRedis::Bulk("redis_version:7.2.4\r\nserver_name:valkey\r\nserver_mode:cluster\r\nrole:master\r\n"),
       "it is part of a Redis Cluster: write --directory cluster://"},
      {FakeRedis::Bulk("nothing"), "it does not say its version (INFO): is it a Redis server?"},
      {FakeRedis::Info("standalone", "loading:1\r\n"), "it still reads its data: wait"},
      {"HTTP/1.1 400 Bad Request\r\n", "as reply type byte; does it speak TLS there?"},
  };
  for (const auto& [info, trouble] : infos) {
    FakeRedis server(loop_, [info = info](const Command&) { return info; });
    TroubleWith(server.target(), trouble);
  }
  const std::vector<std::pair<std::string, std::string>> errors = {
      {"MISCONF Redis is configured to save RDB snapshots, but is not able to persist on disk.",
       "make room on its disk"},
      {"OOM command not allowed when used memory > 'maxmemory'.", "raise its maxmemory, or delete objects"},
      {"READONLY You can't write against a read only replica.", "it is a read-only replica: name the master"},
      {"LOADING Redis is loading the dataset in memory", "it reads its data: wait"},
      {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "see to the master"},
      {"ERR Error running script: Script killed by user with SCRIPT KILL...", "it is tried again"},
  };
  for (const auto& [error, remedy] : errors) {
    FakeRedis server(loop_, [error = error](const Command& command) {
      return command[0] == "INFO" ? FakeRedis::Info() : FakeRedis::Error(error);
    });
    TroubleWith(server.target(), remedy);
  }
}

TEST_F(RedisErrorsTest, AServersTextIsShownInOneLineWithoutControlCharacters) {
  EXPECT_EQ(WithRemedy("ERR strange \x1b[2J\tthing\r\nand more"), "ERR strange ?[2J?thing");
  EXPECT_EQ(WithRemedy(std::string(1000, 'x')).size(), 200u);
}

TEST_F(RedisErrorsTest, AServerThatRepeatsThePasswordDoesNotBringItIntoTheLog) {
  for (const char* words : {"ERR unknown command 'AUTH', with args beginning with: 'Hush' ", "ERR what is Hush?"}) {
    FakeRedis server(loop_, [words](const Command&) { return FakeRedis::Error(words); });
    Options options;
    options.target = server.target();
    options.password = Secret::FromText("Hush");
    const std::string said = TroubleWith(options, "ERR ");
    EXPECT_FALSE(absl::StrContains(said, "Hush")) << said;
  }
}

class RedisTlsTest : public RedisErrorsTest {
 protected:
  Options With(const std::string& target, const TlsOptions& tls) {
    Options options;
    options.target = *Target::Parse(target);
    options.tls = tls;
    return options;
  }
  TlsOptions Trusting() {
    TlsOptions tls;
    tls.ca = certificates_.ca();
    return tls;
  }

  const Certificates certificates_;
  const std::string port_ = absl::StrCat(FreePort());
  const std::string plain_port_ = absl::StrCat(FreePort());
  RedisServer server_{{"--port", plain_port_, "--tls-port", port_, "--bind", "127.0.0.1", "--tls-cert-file",
                       certificates_.server(), "--tls-key-file", certificates_.server_key(), "--tls-ca-cert-file",
                       certificates_.ca(), "--tls-auth-clients", "optional"}};
};

TEST_F(RedisTlsTest, TlsIsUsedWithAServerThatProvesItsName) {
  TroubleWith(With("rediss://127.0.0.1:" + port_, Trusting()), "OK");
  TlsOptions tls = Trusting();
  tls.name = "redis.test";
  TroubleWith(With("rediss://127.0.0.1:" + port_, tls), "OK");
}

TEST_F(RedisTlsTest, AnUntrustedServerIsRefused) {
  TroubleWith(With("rediss://127.0.0.1:" + port_, TlsOptions()), "is not trusted");
  const Certificates others;
  TlsOptions tls;
  tls.ca = others.ca();
  TroubleWith(With("rediss://127.0.0.1:" + port_, tls), "give its authority's file by --redis-tls-ca");
  tls = Trusting();
  tls.name = "another.test";
  TroubleWith(With("rediss://127.0.0.1:" + port_, tls), "the server's certificate is for another name");
  TroubleWith(With("rediss://localhost:" + port_, Trusting()), "the server's certificate is for another name");
  tls = TlsOptions();
  tls.verify = false;
  TroubleWith(With("rediss://localhost:" + port_, tls), "OK");
}

TEST_F(RedisTlsTest, TlsAndPlainTextAreNotConfused) {
  TroubleWith(With("rediss://127.0.0.1:" + plain_port_, Trusting()), "does the server speak TLS on this port?");
  TroubleWith("redis://127.0.0.1:" + port_, "does it speak TLS there? With it: rediss://");
}

TEST_F(RedisTlsTest, AServerThatAsksForACertificateGetsOne) {
  const std::string port = absl::StrCat(FreePort());
  RedisServer asks({"--tls-port", port, "--bind", "127.0.0.1", "--tls-cert-file", certificates_.server(),
                    "--tls-key-file", certificates_.server_key(), "--tls-ca-cert-file", certificates_.ca()});
  TlsOptions tls = Trusting();
  TroubleWith(With("rediss://127.0.0.1:" + port, tls), "--redis-tls-cert");
  tls.cert = certificates_.client();
  tls.key = certificates_.client_key();
  TroubleWith(With("rediss://127.0.0.1:" + port, tls), "OK");
}

TEST_F(RedisTlsTest, LargeCommandsAndRepliesComeThrough) {
  Line line(loop_, *Target::Parse("rediss://127.0.0.1:" + port_), ConnectionOptions(), *Tls::Create(Trusting()));
  const std::string large(3'000'000, 'x');
  absl::StatusOr<Reply> echoed = absl::InternalError("no answer");
  bool answered = false;
  base::Pending call;
  const base::Time limit = loop_.Now() + kPatience;
  while (!echoed.ok() && loop_.Now() < limit) {
    answered = false;
    call = line.connection().Call({"ECHO", large}, kPatience, [&](absl::StatusOr<Reply> reply) {
      echoed = std::move(reply);
      answered = true;
    });
    loop_.RunUntil([&] { return answered; }, limit);
    loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(2));
  }
  ASSERT_TRUE(echoed.ok()) << echoed.status();
  EXPECT_EQ(echoed->text, large);
}

TEST_F(RedisTlsTest, AFileThatIsMissingOrWrongIsNamed) {
  const std::string target = "rediss://127.0.0.1:" + port_;
  TlsOptions tls;
  tls.ca = "/no/such/file";
  TroubleWith(With(target, tls), "--redis-tls-ca: /no/such/file: ");
  tls = Trusting();
  tls.cert = certificates_.client();
  TroubleWith(With(target, tls), "--redis-tls-cert and --redis-tls-key go together");
  tls.key = certificates_.server_key();
  TroubleWith(With(target, tls), "--redis-tls-key: " + certificates_.server_key());
  tls.cert = certificates_.client_key();
  TroubleWith(With(target, tls), "--redis-tls-cert: " + certificates_.client_key());
}

}  // namespace
}  // namespace tokamak::directory::redis
