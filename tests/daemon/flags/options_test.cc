#include "lib/daemon/flags/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/version.h"
#include "lib/daemon/watch/http_hosts.h"
#include "tests/support/short_folder.h"

namespace tokamak::daemon {
namespace {

using Strings = std::vector<std::string>;

class OptionsTest : public testing::Test {
 protected:
  // Parses the flags of a good command line with `more` behind them.
  ParsedFlags Parse(const Strings& more, const std::string& listen = "127.0.0.1:7000") {
    Strings all = {"--listen", listen, "--device", "soft:udp@127.0.0.1", "--socket", "/tmp/s"};
    all.insert(all.end(), more.begin(), more.end());
    return ParseOnly(all);
  }

  ParsedFlags ParseOnly(const Strings& flags) {
    std::vector<const char*> argv = {"tokd"};
    for (const std::string& flag : flags) argv.push_back(flag.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    ParsedFlags parsed = ParseFlags(static_cast<int>(argv.size()), argv.data());
    output_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return parsed;
  }

  // Refused with exit code 2 and one line that has all of `parts`.
  void ExpectRefused(const ParsedFlags& parsed, const Strings& parts) {
    EXPECT_FALSE(parsed.run);
    EXPECT_EQ(parsed.exit_code, 2);
    EXPECT_EQ(output_, "");
    EXPECT_EQ(std::count(error_.begin(), error_.end(), '\n'), 1) << error_;
    EXPECT_EQ(error_.substr(0, 6), "tokd: ");
    for (const std::string& part : parts)
      EXPECT_NE(error_.find(part), std::string::npos) << error_ << " lacks " << part;
  }

  std::string output_;
  std::string error_;
};

TEST_F(OptionsTest, DevicesAreNamedTogetherOrOneByOne) {
  EXPECT_EQ(Parse({"--device", "soft:udp@127.0.1.1"}).options.device, "soft:udp@127.0.0.1,soft:udp@127.0.1.1");
  EXPECT_EQ(Parse({"--device", "soft:udp@127.0.1.1,soft:udp@127.0.2.1"}).options.device,
            "soft:udp@127.0.0.1,soft:udp@127.0.1.1,soft:udp@127.0.2.1");
}

TEST_F(OptionsTest, ChunksAreChosenWithinTheirBounds) {
  EXPECT_EQ(Parse({}).options.chunk_size, 1u << 20);
  EXPECT_EQ(Parse({}).options.chunks_in_flight, 8u);
  EXPECT_EQ(Parse({"--chunk-size", "64KiB"}).options.chunk_size, 64u << 10);
  EXPECT_EQ(Parse({"--chunks-in-flight", "32"}).options.chunks_in_flight, 32u);
  ExpectRefused(Parse({"--chunk-size", "4095"}), {"--chunk-size", "4 KiB"});
  ExpectRefused(Parse({"--chunk-size", "2GiB"}), {"--chunk-size", "1 GiB"});
  ExpectRefused(Parse({"--chunk-size", "much"}), {"--chunk-size"});
  ExpectRefused(Parse({"--chunks-in-flight", "0"}), {"--chunks-in-flight"});
  ExpectRefused(Parse({"--chunks-in-flight", "1025"}), {"--chunks-in-flight"});
}

TEST_F(OptionsTest, ThreeFlagsAreEnough) {
  const ParsedFlags parsed = Parse({});
  ASSERT_TRUE(parsed.run) << error_;
  const DaemonOptions& options = parsed.options;
  EXPECT_EQ(options.listen.ToString(), "127.0.0.1:7000");
  EXPECT_EQ(options.name, "127.0.0.1:7000");
  EXPECT_EQ(options.device, "soft:udp@127.0.0.1");
  EXPECT_EQ(options.socket, "/tmp/s");
  EXPECT_EQ(options.memory, uint64_t{512} << 20);
  EXPECT_EQ(options.directory.kind, DirectoryChoice::Kind::kServe);
  EXPECT_EQ(options.engines, 1u);
  EXPECT_EQ(options.registration, "arena");
  // Spinning is for machines with processors to spare.
  const bool spins = std::thread::hardware_concurrency() >= 8;
  EXPECT_EQ(options.detection.mode, spins ? os::Detection::Mode::kAdaptive : os::Detection::Mode::kEvent);
  EXPECT_EQ(options.drain, base::Seconds(10));
  EXPECT_EQ(options.lease, base::Seconds(10));
  EXPECT_EQ(options.grace, base::Seconds(60));
  EXPECT_FALSE(options.ack_timeout.has_value());
  EXPECT_TRUE(options.prefault);
  EXPECT_EQ(options.connect_by, ConnectBy::kRdmaCm);
  EXPECT_FALSE(options.require_rdma);
  EXPECT_FALSE(options.cache);
  EXPECT_EQ(options.quota, 0u);
  EXPECT_EQ(options.huge_pages, HugePagesChoice::kWhereFree);
}

TEST_F(OptionsTest, EveryFlagIsRead) {
  const ParsedFlags parsed = Parse({"--memory",
                                    "2GiB",
                                    "--directory",
                                    "tokd@10.0.0.1:7000",
                                    "--name",
                                    "n-1",
                                    "--engines",
                                    "2",
                                    "--detection",
                                    "busy",
                                    "--registration",
                                    "on_demand",
                                    "--policy",
                                    "eager:32KiB,read",
                                    "--pcap",
                                    "/tmp/p",
                                    "--congestion",
                                    "dcqcn:25Gb/s",
                                    "--drain",
                                    "3s",
                                    "--lease",
                                    "1s",
                                    "--grace",
                                    "4s",
                                    "--ack-timeout",
                                    "250ms",
                                    "--bulk-queue-pairs",
                                    "4",
                                    "--cm",
                                    "tcp",
                                    "--pkey-index",
                                    "300",
                                    "--service-level",
                                    "5",
                                    "--traffic-class",
                                    "104",
                                    "--require-rdma",
                                    "--cache",
                                    "--quota",
                                    "64MiB",
                                    "--huge-pages",
                                    "--no-prefault",
                                    "--http",
                                    "[::1]:9464",
                                    "--http-host",
                                    "proxy.example",
                                    "--http-host",
                                    "proxy"});
  ASSERT_TRUE(parsed.run) << error_;
  const DaemonOptions& options = parsed.options;
  EXPECT_EQ(options.memory, uint64_t{2} << 30);
  EXPECT_EQ(options.directory.kind, DirectoryChoice::Kind::kRemote);
  EXPECT_EQ(options.directory.server.ToString(), "10.0.0.1:7000");
  EXPECT_EQ(options.name, "n-1");
  EXPECT_EQ(options.engines, 2u);
  EXPECT_EQ(options.bulk_queue_pairs, 4u);
  EXPECT_EQ(options.detection.mode, os::Detection::Mode::kBusy);
  EXPECT_EQ(options.registration, "on_demand");
  EXPECT_EQ(options.pcap, "/tmp/p");
  ASSERT_TRUE(options.congestion.has_value());
  EXPECT_EQ(options.congestion->control, verbs::soft::CongestionControl::kDcqcn);
  EXPECT_EQ(options.congestion->line_rate, 25'000'000'000u);
  EXPECT_EQ(options.drain, base::Seconds(3));
  EXPECT_EQ(options.lease, base::Seconds(1));
  EXPECT_EQ(options.grace, base::Seconds(4));
  EXPECT_EQ(options.ack_timeout, base::Milliseconds(250));
  EXPECT_EQ(options.connect_by, ConnectBy::kTcp);
  EXPECT_EQ(options.fabric.pkey_index, 300);
  EXPECT_EQ(options.fabric.service_level, 5);
  EXPECT_EQ(options.fabric.traffic_class, 104);
  EXPECT_TRUE(options.require_rdma);
  EXPECT_TRUE(options.cache);
  EXPECT_EQ(options.quota, uint64_t{64} << 20);
  EXPECT_EQ(options.huge_pages, HugePagesChoice::kAlways);
  EXPECT_FALSE(options.prefault);
  EXPECT_EQ(options.http->ToString(), "[::1]:9464");
  EXPECT_EQ(options.http_hosts, (Strings{"proxy.example", "proxy"}));
}

TEST_F(OptionsTest, HugePagesAreAskedForOrForbiddenAndNotBoth) {
  const ParsedFlags parsed = Parse({"--no-huge-pages"});
  ASSERT_TRUE(parsed.run) << error_;
  EXPECT_EQ(parsed.options.huge_pages, HugePagesChoice::kNever);
  ExpectRefused(Parse({"--huge-pages", "--no-huge-pages"}), {"--huge-pages", "--no-huge-pages"});
}

TEST_F(OptionsTest, APolicyIsATableOrAFileOrLearned) {
  const testing_support::ShortFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder.Path(name)) << text;
    return folder.Path(name);
  };
  EXPECT_FALSE(Parse({}).options.policy.table.has_value()) << "what is built in for the device";
  EXPECT_EQ(Parse({"--policy", "eager:32KiB,write"}).options.policy.table->ToString(), "eager:32KiB,write");
  const ParsedFlags adaptive = Parse({"--policy", "adaptive"});
  EXPECT_TRUE(adaptive.options.policy.adaptive);
  EXPECT_FALSE(adaptive.options.policy.table.has_value());
  const ParsedFlags begins = Parse({"--policy", "adaptive:eager:1KiB,read"});
  EXPECT_TRUE(begins.options.policy.adaptive);
  EXPECT_EQ(begins.options.policy.table->ToString(), "eager:1KiB,read");

  const std::string file = write("p.json", R"({"tokamak_policy": 1, "table": [{"protocol": "write"}],
      "measured": {"date": "today\n", "puller": {"node": "a", "device": "x"}, "holder": {"node": "b", "device": "y"}}})");
  const ParsedFlags from_file = Parse({"--policy", file});
  ASSERT_TRUE(from_file.run) << error_;
  EXPECT_EQ(from_file.options.policy.table->ToString(), "write");
  EXPECT_EQ(from_file.options.policy.origin, absl::StrCat(file, ", measured today\\n from a (x) to b (y)"));
  EXPECT_TRUE(Parse({"--policy", absl::StrCat("adaptive:", file)}).options.policy.adaptive);

  ExpectRefused(Parse({"--policy", folder.Path("none.json")}), {"--policy", "none.json", "No such file"});
  ExpectRefused(Parse({"--policy", write("bad.json", "{")}), {"--policy", "bad.json", "no JSON"});
  ExpectRefused(Parse({"--policy", write("fax.json", R"({"tokamak_policy": 1, "table": [{"protocol": "fax"}]})")}),
                {"--policy", "fax.json", "step 1", "'fax'"});
  std::filesystem::create_directory(folder.Path("folder.json"));
  ExpectRefused(Parse({"--policy", folder.Path("folder.json")}), {"--policy", "no regular file"});
  ExpectRefused(Parse({"--policy", "adaptive:"}), {"--policy", "no protocol"});
  ExpectRefused(Parse({"--policy", "adaptive:fax"}), {"--policy", "'fax'"});
}

TEST_F(OptionsTest, DetectionTakesATimeToSpin) {
  const ParsedFlags parsed = Parse({"--detection", "adaptive:50us"});
  ASSERT_TRUE(parsed.run) << error_;
  EXPECT_EQ(parsed.options.detection.spin, base::Microseconds(50));
}

TEST_F(OptionsTest, RedisIsNamedByHostOrBySocket) {
  for (const std::string where : {"localhost:6379", "unix:/run/redis.sock"}) {
    const ParsedFlags parsed = Parse({"--directory", "redis@" + where});
    ASSERT_TRUE(parsed.run) << error_;
    EXPECT_EQ(parsed.options.directory.kind, DirectoryChoice::Kind::kRedis);
    EXPECT_EQ(parsed.options.directory.redis.target.places.front().ToString(), where);
  }
}

// A variable of the environment, while it lives.
class EnvironmentVariable final {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~EnvironmentVariable() { unsetenv(name_); }

 private:
  const char* const name_;
};

TEST_F(OptionsTest, RedisFlagsAreRead) {
  const testing_support::ShortFolder folder;
  const std::string file = folder.Path("password");
  std::ofstream(file) << "from a file\n";
  ParsedFlags parsed =
      Parse({"--directory", "sentinel://tok@s1,s2:7/m/3", "--redis-prefix", "east", "--redis-password-file", file,
             "--redis-sentinel-user", "watcher", "--redis-sentinel-password-file", file});
  ASSERT_TRUE(parsed.run) << error_;
  const directory::redis::Options& redis = parsed.options.directory.redis;
  EXPECT_EQ(redis.target.master, "m");
  EXPECT_EQ(redis.target.database, 3u);
  EXPECT_EQ(redis.prefix, "east");
  EXPECT_EQ(*redis.password.Read(), "from a file");
  EXPECT_EQ(redis.sentinel.user, "watcher");
  EXPECT_EQ(*redis.sentinel.password.Read(), "from a file");

  const EnvironmentVariable variable("TOKD_REDIS_PASSWORD", "from the environment");
  parsed = Parse({"--directory", "rediss://db1", "--redis-tls-name", "n", "--redis-tls-no-verify"});
  ASSERT_TRUE(parsed.run) << error_;
  EXPECT_EQ(*parsed.options.directory.redis.password.Read(), "from the environment");
  EXPECT_EQ(parsed.options.directory.redis.tls.name, "n");
  EXPECT_FALSE(parsed.options.directory.redis.tls.verify);
  EXPECT_EQ(parsed.config.find("from the environment"), std::string::npos);
  ExpectRefused(Parse({"--directory", "redis://db1", "--redis-password-file", file}),
                {"--redis-password-file", "TOKD_REDIS_PASSWORD", "leave one out"});
  ExpectRefused(Parse({}), {"TOKD_REDIS_PASSWORD", "goes with --directory redis://"});
}

TEST_F(OptionsTest, ARedisFlagThatIsOutOfPlaceOrWrongIsNamed) {
  ExpectRefused(Parse({"--redis-prefix", "east"}), {"--redis-prefix", "goes with --directory redis://"});
  ExpectRefused(Parse({"--directory", "redis://db1", "--redis-tls-ca", "/ca"}), {"--redis-tls-ca", "rediss://"});
  ExpectRefused(Parse({"--directory", "redis://db1", "--redis-sentinel-user", "a"}),
                {"--redis-sentinel-user", "sentinel://"});
  ExpectRefused(Parse({"--directory", "redis://tok@db1"}), {"user tok needs a password", "--redis-password-file"});
  ExpectRefused(Parse({"--directory", "redis://tok:Hush@db1"}), {"--directory", "--redis-password-file"});
  EXPECT_EQ(error_.find("Hush"), std::string::npos);
  ExpectRefused(Parse({"--directory", "redis://db1", "--redis-password-file", "/no/such"}), {"/no/such"});
  ExpectRefused(Parse({"--directory", "redis://db1", "--redis-prefix", "a:b"}), {"prefix", "colon"});
  ExpectRefused(Parse({"--directory", "rediss://db1", "--redis-tls-ca", "/no/such"}), {"--redis-tls-ca", "/no/such"});
  const EnvironmentVariable variable("TOKD_REDIS_PASWORD", "x");
  ExpectRefused(Parse({}), {"TOKD_REDIS_PASWORD", "did you mean TOKD_REDIS_PASSWORD?"});
}

TEST_F(OptionsTest, ANodeThatServesIsNamedByItsHostAsWell) {
  const ParsedFlags parsed = Parse({"--directory", "tokd@node1.example.com:7000"});
  ASSERT_TRUE(parsed.run) << error_;
  EXPECT_EQ(parsed.options.directory.server.ToString(), "node1.example.com:7000");
}

TEST_F(OptionsTest, TheDefaultNameOfAnIpv6NodeIsANameThatTheDirectoryTakes) {
  const ParsedFlags parsed = Parse({"--insecure"}, "[fd00::1]:7000");
  ASSERT_TRUE(parsed.run) << error_;
  EXPECT_EQ(parsed.options.name, "fd00::1-7000");
}

TEST_F(OptionsTest, TheVersionIsPrintedAndExitsWithZero) {
  const ParsedFlags parsed = ParseOnly({"--version"});
  EXPECT_FALSE(parsed.run);
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_EQ(output_, absl::StrCat("tokd ", base::kVersion, "\n"));
}

TEST_F(OptionsTest, HelpNamesEveryFlagAndExitsWithZero) {
  const ParsedFlags parsed = ParseOnly({"--help"});
  EXPECT_FALSE(parsed.run);
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_EQ(error_, "");
  for (const char* flag : {"--listen",     "--device",       "--memory",        "--socket",
                           "--directory",  "--name",         "--engines",       "--bulk-queue-pairs",
                           "--detection",  "--registration", "--policy",        "--pcap",
                           "--drain",      "--cm",           "--require-rdma",  "--cache",
                           "--huge-pages", "--no-prefault",  "--ack-timeout",   "--quota",
                           "--lease",      "--grace",        "--congestion",    "--http-host",
                           "--insecure",   "--secret-file",  "--no-encryption", "Exit codes",
                           "Example"}) {
    EXPECT_NE(output_.find(flag), std::string::npos) << flag;
  }
  for (const absl::string_view line : absl::StrSplit(output_, '\n')) EXPECT_LE(line.size(), 80u) << line;
}

TEST_F(OptionsTest, OnAnythingButLoopbackItIsSaidWhoMayComeIn) {
  for (const char* own : {"127.0.0.1:7000", "127.9.8.7:7000", "[::1]:7000"}) EXPECT_TRUE(Parse({}, own).run) << own;
  for (const char* fabric : {"10.0.0.1:7000", "[fd00::1]:7000", "192.0.2.1:7000"}) {
    ExpectRefused(Parse({}, fabric), {"--listen", fabric, "tok secret new", "--secret-file", "--insecure"});
    EXPECT_TRUE(Parse({"--insecure"}, fabric).run) << fabric;
    const ParsedFlags secured = Parse({"--secret-file", "/tmp/secret"}, fabric);
    EXPECT_TRUE(secured.run);
    EXPECT_EQ(secured.options.peers.secret_file, "/tmp/secret");
    EXPECT_TRUE(secured.options.peers.encrypts);
  }
  EXPECT_FALSE(Parse({"--secret-file", "/tmp/secret", "--no-encryption"}).options.peers.encrypts);
  ExpectRefused(Parse({"--secret-file", "/tmp/secret", "--insecure"}),
                {"--secret-file", "--insecure", "leave one out"});
  ExpectRefused(Parse({"--no-encryption"}), {"--no-encryption", "--secret-file"});
}

TEST_F(OptionsTest, MissingFlagsAreReported) {
  ExpectRefused(ParseOnly({"--device", "soft:udp@127.0.0.1", "--socket", "/tmp/s"}),
                {"--listen", "required", "--help"});
  ExpectRefused(ParseOnly({"--listen", "127.0.0.1:1", "--socket", "/tmp/s"}), {"--device", "required"});
  ExpectRefused(ParseOnly({"--listen", "127.0.0.1:1", "--device", "soft:udp@127.0.0.1"}), {"--socket", "required"});
}

TEST_F(OptionsTest, AWrongValueIsRefusedInOneLineThatNamesTheFlag) {
  ExpectRefused(Parse({}, "localhost"), {"--listen", "localhost"});
  ExpectRefused(Parse({}, "127.0.0.1"), {"--listen", "port", "127.0.0.1:7000"});
  for (const char* every : {"0.0.0.0:7000", "[::]:7000"}) {
    ExpectRefused(Parse({}, every), {"--listen", "one of this host's"});
  }
  ExpectRefused(Parse({"--memory", "lots"}), {"--memory"});
  ExpectRefused(Parse({"--memory", "4KiB"}), {"--memory", "at least 1MiB"});
  ExpectRefused(Parse({"--directory", "nowhere"}), {"--directory", "serve", "tokd@HOST:PORT", "redis://HOST:PORT"});
  ExpectRefused(Parse({"--directory", "redis@"}), {"--directory", "redis://127.0.0.1:6379"});
  ExpectRefused(Parse({"--directory", "tokd@10.0.0.1"}), {"--directory", "port", "10.0.0.1:7000"});
  ExpectRefused(Parse({"--directory", "tokd@not here:7"}), {"--directory", "not here"});
  ExpectRefused(Parse({"--engines", "16"}), {"--engines", "Value 16 not in range", "15"});
  ExpectRefused(Parse({"--bulk-queue-pairs", "9"}), {"--bulk-queue-pairs", "Value 9 not in range", "8"});
  ExpectRefused(Parse({"--detection", "psychic"}), {"--detection", "busy, event, adaptive"});
  ExpectRefused(Parse({"--detection", "adaptive:soon"}), {"--detection"});
  ExpectRefused(Parse({"--registration", "never"}), {"--registration", "arena", "on_demand", "cached"});
  ExpectRefused(Parse({"--policy", "teleport"}), {"--policy"});
  ExpectRefused(Parse({"--drain", "long"}), {"--drain"});
  ExpectRefused(Parse({"--lease", "long"}), {"--lease"});
  ExpectRefused(Parse({"--lease", "199ms"}), {"--lease", "from 200"});
  ExpectRefused(Parse({"--lease", "3601s"}), {"--lease"});
  ExpectRefused(Parse({"--grace", "long"}), {"--grace"});
  ExpectRefused(Parse({"--grace", "3601s"}), {"--grace"});
  ExpectRefused(Parse({"--ack-timeout", "0s"}), {"--ack-timeout", "1ms"});
  ExpectRefused(Parse({"--ack-timeout", "501ms"}), {"--ack-timeout", "500"});
  ExpectRefused(Parse({"--congestion", "cubic"}), {"--congestion", "additive, fixed, none, dcqcn"});
  ExpectRefused(Parse({"--congestion", "dcqcn"}), {"--congestion", "dcqcn:10Gb/s"});
  ExpectRefused(Parse({"--pkey-index", "1"}), {"--pkey-index", "goes with --cm tcp"});
  ExpectRefused(Parse({"--cm", "tcp", "--service-level", "16"}), {"--service-level", "Value 16 not in range", "15"});
  ExpectRefused(Parse({"--cm", "tcp", "--traffic-class", "256"}), {"--traffic-class", "255"});
  ExpectRefused(Parse({"--cm", "tcp", "--pkey-index", "65536"}), {"--pkey-index", "65535"});
  ExpectRefused(Parse({"--http-host", "proxy"}), {"--http-host", "goes with --http"});
  ExpectRefused(Parse({"--http", "0", "--http-host", "http://proxy:80"}), {"--http-host", "without http://"});
  Strings many = {"--http", "0"};
  for (size_t i = 0; i <= HttpHosts::kMaxNames; ++i) many.push_back("--http-host=proxy");
  ExpectRefused(Parse(many), {"--http-host", "at most 64"});
  ExpectRefused(Parse({"--frobnicate"}), {"there is no flag --frobnicate (see tokd --help)"});
  ExpectRefused(Parse({"--memroy=1GiB"}), {"there is no flag --memroy; did you mean --memory?"});
  ExpectRefused(Parse({"stray"}), {"stray", "--help"});
}

TEST_F(OptionsTest, TheFirstOfSeveralWrongFlagsInTheOrderOfHelpIsNamed) {
  ExpectRefused(Parse({"--quota", "much", "--memory", "more"}), {"tokd: --memory: "});
  ExpectRefused(Parse({"--grace", "long", "--lease", "1ms"}), {"tokd: --lease: from"});
  ExpectRefused(Parse({"--lease", "1ms", "--name", "two words"}), {"tokd: --lease: from"});
}

TEST_F(OptionsTest, ServiceLevelAndTrafficClassSuitEveryWayOfConnecting) {
  const ParsedFlags none = Parse({});
  EXPECT_FALSE(none.options.fabric.service_level.has_value());
  EXPECT_FALSE(none.options.fabric.traffic_class.has_value());
  for (const char* cm : {"rdma", "tcp"}) {
    const ParsedFlags parsed = Parse({"--cm", cm, "--service-level", "0", "--traffic-class", "255"});
    ASSERT_TRUE(parsed.run) << error_;
    EXPECT_EQ(parsed.options.fabric.service_level, uint8_t{0});
    EXPECT_EQ(parsed.options.fabric.traffic_class, uint8_t{255});
  }
}

TEST_F(OptionsTest, ThePathIsDescribedIfTheDeviceCannotKnowIt) {
  const ParsedFlags none = Parse({});
  EXPECT_FALSE(none.options.fabric.path_mtu.has_value());
  EXPECT_FALSE(none.options.fabric.router_lid.has_value());
  const ParsedFlags parsed = Parse({"--cm", "tcp", "--path-mtu", "2048", "--router-lid", "12"});
  ASSERT_TRUE(parsed.run) << error_;
  EXPECT_EQ(parsed.options.fabric.path_mtu, 2048u);
  EXPECT_EQ(parsed.options.fabric.router_lid, 12);
  EXPECT_TRUE(Parse({"--path-mtu", "2048"}).run) << error_;
  ExpectRefused(Parse({"--path-mtu", "1500"}), {"--path-mtu", "1500"});
  ExpectRefused(Parse({"--router-lid", "12"}), {"--router-lid", "--cm tcp"});
  ExpectRefused(Parse({"--cm", "tcp", "--router-lid", "49152"}), {"--router-lid"});
}

TEST_F(OptionsTest, ANameThatTheDirectoryWouldRefuseIsRefusedAtOnce) {
  ExpectRefused(Parse({"--name", "two words"}), {"--name", "A-Z a-z 0-9 . _ : -"});
  ExpectRefused(Parse({"--name", "[fd00::1]:7000"}), {"--name"});
  ExpectRefused(Parse({"--name", std::string(65, 'x')}), {"--name", "64"});
}

TEST_F(OptionsTest, EnginesNeedPortsOfTheirOwn) {
  EXPECT_TRUE(Parse({"--engines", "2"}, "127.0.0.1:65533").run);
  EXPECT_TRUE(Parse({"--engines", "0"}, "127.0.0.1:65535").run);
  ExpectRefused(Parse({"--engines", "2"}, "127.0.0.1:65534"), {"--listen", "2 engines", "65536", "lower port"});
}

}  // namespace
}  // namespace tokamak::daemon
