// Flags from a file and from the environment, and reading them again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lib/daemon/flags/config_file.h"
#include "lib/daemon/flags/options.h"
#include "lib/daemon/flags/reload.h"
#include "tests/support/short_folder.h"

namespace tokamak::daemon {
namespace {

using Strings = std::vector<std::string>;

// While it lives.
class Variable final {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const std::string name_;
};

class ConfigTest : public testing::Test {
 protected:
  static constexpr const char* kGood =
      R"("listen": "127.0.0.1:7000", "device": "soft:udp@127.0.0.1", "socket": "/tmp/s")";

  void Write(const std::string& text) { std::ofstream(file_) << text; }
  // Writes the required settings, and `more` before them.
  void WriteGood(const std::string& more = "") { Write("{" + more + kGood + "}"); }

  ParsedFlags Parse(const Strings& flags) {
    std::vector<const char*> argv = {"tokd"};
    for (const std::string& flag : flags) argv.push_back(flag.c_str());
    std::ostringstream errors;
    ParsedFlags parsed = ParseFlags(static_cast<int>(argv.size()), argv.data(), errors);
    error_ = errors.str();
    return parsed;
  }
  ParsedFlags ParseFile(Strings more = {}) {
    more.insert(more.begin(), {"--config", file_});
    return Parse(more);
  }
  // One line that begins with the file's name.
  void ExpectRefused(const std::string& text, const std::string& why) {
    Write(text);
    EXPECT_FALSE(ParseFile().run) << text;
    EXPECT_EQ(error_, "tokd: --config: " + file_ + ": " + why + "\n");
  }

  testing_support::ShortFolder folder_;
  const std::string file_ = folder_.Path("tokd.json");
  std::string error_;
};

TEST_F(ConfigTest, AFileGivesEveryKindOfFlag) {
  Write(R"({
    // for two rails
    "listen": "127.0.0.1:7000", /* of this host */
    "device": ["soft:udp@127.0.0.1", "soft:udp@127.0.1.1"],
    "socket": "/tmp/s",
    "engines": 2,
    "memory": "77MiB",
    "evacuate": true,
    "require-rdma": false,
    "huge-pages": false,
    "no-huge-pages": true,
    "no-prefault": true,
    "log-level": "warning",
    "log-format": "json"
  })");
  const ParsedFlags parsed = ParseFile();
  ASSERT_TRUE(parsed.run) << error_;
  EXPECT_EQ(parsed.options.device, "soft:udp@127.0.0.1,soft:udp@127.0.1.1");
  EXPECT_EQ(parsed.options.engines, 2u);
  EXPECT_EQ(parsed.options.memory, uint64_t{77} << 20);
  EXPECT_TRUE(parsed.options.evacuate);
  EXPECT_FALSE(parsed.options.require_rdma);
  EXPECT_EQ(parsed.options.huge_pages, HugePagesChoice::kNever);
  EXPECT_FALSE(parsed.options.prefault);
  EXPECT_EQ(parsed.options.log.level, base::Severity::kWarning);
  EXPECT_TRUE(parsed.options.log.json);
}

TEST_F(ConfigTest, TheCommandLineOverridesTheEnvironmentAndThatTheFile) {
  WriteGood(R"("memory": "10MiB", "engines": 1, "drain": "1s", )");
  const Variable memory("TOKD_MEMORY", "20MiB"), engines("TOKD_ENGINES", "2"), evacuate("TOKD_EVACUATE", "true");
  const ParsedFlags parsed = ParseFile({"--engines", "3"});
  ASSERT_TRUE(parsed.run) << error_;
  EXPECT_EQ(parsed.options.engines, 3u);
  EXPECT_EQ(parsed.options.memory, uint64_t{20} << 20);
  EXPECT_EQ(parsed.options.drain, base::Seconds(1));
  EXPECT_TRUE(parsed.options.evacuate);
}

TEST_F(ConfigTest, TheEnvironmentMayNameTheFileAndGiveEverythingElse) {
  const Variable listen("TOKD_LISTEN", "127.0.0.1:7000"), device("TOKD_DEVICE", "soft:udp@127.0.0.1");
  const Variable socket("TOKD_SOCKET", "/tmp/s");
  EXPECT_TRUE(Parse({}).run) << error_;
  Write(R"({"engines": 7})");
  const Variable config("TOKD_CONFIG", file_);
  EXPECT_EQ(Parse({}).options.engines, 7u);
  const Variable missing("TOKD_CONFIG", folder_.Path("none"));
  EXPECT_FALSE(Parse({}).run);
  EXPECT_EQ(error_, "tokd: --config: cannot read " + folder_.Path("none") + "\n");
}

TEST_F(ConfigTest, AnUnknownVariableIsRefusedWithTheNearestOne) {
  WriteGood();
  const Variable wrong("TOKD_MEMRY", "1GiB");
  EXPECT_FALSE(ParseFile().run);
  EXPECT_EQ(error_, "tokd: TOKD_MEMRY in the environment is no flag of tokd; did you mean TOKD_MEMORY?\n");
}

TEST_F(ConfigTest, AMistakeInAFileIsReportedInOneLine) {
  ExpectRefused(R"({"memry": "1GiB"})", R"(unknown key "memry"; did you mean memory?)");
  ExpectRefused(R"({"colour\n\u001b": 1})", R"(unknown key "colour\n\u001b")");
  ExpectRefused(R"({"help": true})", R"(unknown key "help")");
  ExpectRefused(R"({"config": "x"})", R"(unknown key "config")");
  ExpectRefused(R"({"engines": true})", R"("engines": give a text or a whole number)");
  ExpectRefused(R"({"engines": -1})", R"("engines": give a text or a whole number)");
  ExpectRefused(R"({"memory": null})", R"("memory": give a text or a whole number)");
  ExpectRefused(R"({"device": [{}]})", R"("device": give a text or a whole number)");
  ExpectRefused(R"({"memory": ["1GiB", "2GiB"]})", R"("memory": takes one value)");
  ExpectRefused(R"({"evacuate": 1})", R"("evacuate": give true or false)");
  ExpectRefused(R"({"memory": "1GiB", "memory": "2GiB"})", R"("memory" stands there twice)");
  ExpectRefused("[]", R"(it is no JSON object: {"listen": "10.0.0.1:7000", ...})");
  ExpectRefused("", "it is no JSON from line 1, column 1 on");
  ExpectRefused(R"({"chunk-size": 1e999})", "it is no JSON that can be read: a number is out of range");
  ExpectRefused("{\n  \"memory\": \"1GiB\",\n  oops\n}", "it is no JSON from line 3, column 3 on");
  ExpectRefused(std::string(100'000, '['), "it is no JSON from line 1, column 100001 on");
  ExpectRefused(std::string(ConfigFile::kMax + 1, ' '), "it has more than 1 MiB");
}

TEST_F(ConfigTest, AWrongValueNamesItsFlag) {
  WriteGood(R"("engines": 99, )");
  EXPECT_FALSE(ParseFile().run);
  EXPECT_EQ(error_.find("tokd: --engines: Value 99 not in range "), 0u) << error_;  // CLI11's words, which differ
  WriteGood(R"("memory": "much", )");
  EXPECT_FALSE(ParseFile().run);
  EXPECT_EQ(error_.find("tokd: --memory: "), 0u) << error_;
}

TEST_F(ConfigTest, ThePrintedConfigurationIsAnEquivalentFile) {
  WriteGood(R"("engines": 4, "no-prefault": true, "huge-pages": true, "ack-timeout": "50ms", "cache": true, )");
  testing::internal::CaptureStdout();
  const ParsedFlags printed = ParseFile({"--print-config", "--device", "soft:udp@127.0.1.1"});
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_FALSE(printed.run);
  EXPECT_EQ(printed.exit_code, 0) << error_;
  EXPECT_EQ(text, printed.config + "\n");
  EXPECT_NE(text.find(R"("engines": 4)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("device": "soft:udp@127.0.1.1")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("memory": "512MiB")"), std::string::npos) << text;
  EXPECT_EQ(text.find("config"), std::string::npos) << text;
  Write(text);
  EXPECT_EQ(ParseFile().config, printed.config) << error_;
}

TEST_F(ConfigTest, AReloadReportsChangesAndThoseThatNeedARestart) {
  WriteGood();
  const std::vector<const char*> argv = {"tokd", "--config", file_.c_str()};
  Reload reload(static_cast<int>(argv.size()), argv.data(), ParseFile());
  const auto said = [&](std::optional<DaemonOptions>& options) {
    testing::internal::CaptureStderr();
    options = reload.Read();
    return testing::internal::GetCapturedStderr();
  };
  std::optional<DaemonOptions> options;
  EXPECT_NE(said(options).find("reload: changed nothing"), std::string::npos);
  EXPECT_TRUE(options.has_value());

  WriteGood(R"("drain": "3s", "quota": "1MiB", "memory": "1GiB", )");
  std::string log = said(options);
  EXPECT_NE(log.find("reload: changed drain, quota\n"), std::string::npos) << log;
  EXPECT_NE(log.find("reload: a restart is needed to change memory\n"), std::string::npos) << log;
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->drain, base::Seconds(3));
  EXPECT_EQ(options->quota, 1u << 20);

  WriteGood(R"("drain": "3s", "memory": "1GiB", )");
  log = said(options);
  EXPECT_NE(log.find("reload: changed quota\n"), std::string::npos) << log;
  EXPECT_NE(log.find("change memory\n"), std::string::npos) << log;

  Write("{");
  log = said(options);
  EXPECT_FALSE(options.has_value());
  EXPECT_NE(log.find("reload: nothing was changed: tokd: --config: "), std::string::npos) << log;
}

}  // namespace
}  // namespace tokamak::daemon
