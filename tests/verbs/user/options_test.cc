#include "lib/verbs/user/options.h"

#include "gtest/gtest.h"

namespace tokamak::verbs::user {
namespace {

TEST(UserOptionsTest, NothingSaidIsTheDefault) {
  const auto options = Options::Parse("");
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->addresses.empty());
  EXPECT_FALSE(options->log);
}

TEST(UserOptionsTest, WhatIsWrittenIsUnderstoodAgain) {
  const auto options = Options::Parse(
      "address=127.0.0.1+127.0.0.2,pcap=/tmp/x,log,explain,counters,"
      "loss=1%,corrupt=0.25,delay=50us,seed=9");
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
}

TEST(UserOptionsTest, AnUnknownWordIsNamedWithThoseThatAreKnown) {
  const auto options = Options::Parse("adress=127.0.0.1");
  ASSERT_FALSE(options.ok());
  EXPECT_NE(options.status().message().find("\"adress\""), std::string::npos);
  EXPECT_NE(options.status().message().find("address"), std::string::npos);
}

TEST(UserOptionsTest, AFaultThatIsNoneIsRefused) {
  for (const char* text : {"loss=2", "corrupt=some", "delay=5days", "seed=-1"}) {
    EXPECT_FALSE(Options::Parse(text).ok()) << text;
  }
}

TEST(UserOptionsTest, AnAddressThatIsNoneIsRefused) { EXPECT_FALSE(Options::Parse("address=1.2.3").ok()); }

}  // namespace
}  // namespace tokamak::verbs::user
