#include "lib/verbs/kernel/program/options.h"

#include "gtest/gtest.h"

namespace tokamak::verbs::kernel {
namespace {

TEST(UserOptionsTest, NoOptionsAreTheDefault) {
  const auto options = Options::Parse("");
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->addresses.empty());
  EXPECT_FALSE(options->log);
}

TEST(UserOptionsTest, WrittenOptionsAreReadBack) {
  const auto options = Options::Parse(
      "address=127.0.0.1+127.0.0.2,pcap=/tmp/x,log,explain,counters,"
      "loss=1%,corrupt=0.25,delay=50us,seed=9,error-at=3:remote-access,port-down=2s:500ms");
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->addresses.size(), 2u);
  const auto again = Options::Parse(options->ToString());
  ASSERT_TRUE(again.ok()) << again.status() << options->ToString();
  EXPECT_EQ(again->addresses, options->addresses);
  EXPECT_EQ(again->pcap, "/tmp/x");
  EXPECT_TRUE(again->log);
  EXPECT_TRUE(again->explain);
  EXPECT_TRUE(again->counters);
  EXPECT_DOUBLE_EQ(again->faults.loss, 0.01);
  EXPECT_DOUBLE_EQ(again->faults.corruption, 0.25);
  EXPECT_EQ(again->faults.delay, base::Microseconds(50));
  EXPECT_EQ(again->faults.seed, 9u);
  EXPECT_EQ(again->request_fault.number, 3u);
  EXPECT_EQ(again->request_fault.status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(again->port_fault.after, base::Seconds(2));
  EXPECT_EQ(again->port_fault.lasts, base::Milliseconds(500));
}

TEST(UserOptionsTest, AnUnknownWordIsReportedWithTheKnownOnes) {
  const auto options = Options::Parse("adress=127.0.0.1");
  ASSERT_FALSE(options.ok());
  EXPECT_NE(options.status().message().find("\"adress\""), std::string::npos);
  EXPECT_NE(options.status().message().find("address"), std::string::npos);
}

TEST(UserOptionsTest, AnInvalidFaultIsRefused) {
  for (const char* text : {"loss=2", "corrupt=some", "delay=5days", "seed=-1", "error-at=0", "error-at=some",
                           "error-at=1:success", "port-down=0s", "port-down=", "port-down=1s:0s"}) {
    EXPECT_FALSE(Options::Parse(text).ok()) << text;
  }
}

TEST(UserOptionsTest, AFaultHasADefaultIfOneIsAllowed) {
  const auto options = Options::Parse("error-at=1,port-down=1ms");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->request_fault.status, CompletionStatus::kRetryExceeded);
  EXPECT_EQ(options->port_fault.lasts, base::Duration());
}

TEST(UserOptionsTest, AnUnknownStatusIsReportedWithTheKnownOnes) {
  const auto options = Options::Parse("error-at=1:remote");
  ASSERT_FALSE(options.ok());
  for (const char* status : {"'remote'", "local-protection", "remote-access", "rnr-retry-exceeded", "flushed"}) {
    EXPECT_NE(options.status().message().find(status), std::string::npos) << options.status();
  }
}

TEST(UserOptionsTest, AnInvalidAddressIsRefused) { EXPECT_FALSE(Options::Parse("address=1.2.3").ok()); }

}  // namespace
}  // namespace tokamak::verbs::kernel
