#include "lib/daemon/watch/page_address.h"

#include <gtest/gtest.h>

#include <string>

namespace tokamak::daemon {
namespace {

std::string ForOthers(const char* http, const char* engine) {
  return PageForOthers(*base::HostPort::Parse(http), *verbs::Address::Parse(engine));
}

TEST(PageAddressTest, APageAtEveryAddressIsAtTheEnginesAsWell) {
  EXPECT_EQ(ForOthers("0.0.0.0:9464", "10.0.0.1:7000@4792"), "10.0.0.1:9464");
  EXPECT_EQ(ForOthers("[::]:9464", "[fd00::1]:7000"), "[fd00::1]:9464");
  EXPECT_EQ(ForOthers("10.1.0.1:80", "10.0.0.1:7000"), "10.1.0.1:80");
  EXPECT_EQ(ForOthers("127.0.0.1:80", "10.0.0.1:7000"), "127.0.0.1:80");
}

TEST(PageAddressTest, APageAtALoopbackAddressIsLinkedToOnItsOwnMachineAlone) {
  const PagePlace here = {"127.0.0.1:1", "10.0.0.1:7000"};
  EXPECT_EQ(LinkToPage({"127.0.0.1:2", "10.0.0.1:7001"}, here), "http://127.0.0.1:2/");
  EXPECT_EQ(LinkToPage({"127.0.0.1:2", "10.0.0.2:7000"}, here), "") << "of another machine";
  EXPECT_EQ(LinkToPage({"127.0.0.1:2", "127.0.0.2:7000"}, {"127.0.0.1:1", "127.0.0.1:7000"}), "http://127.0.0.1:2/")
      << "all is on one machine";
  EXPECT_EQ(LinkToPage({"127.0.0.1:2", "10.0.0.1:7001"}, {"10.0.0.1:1", "10.0.0.1:7000"}), "")
      << "who looks may be elsewhere";
  EXPECT_EQ(LinkToPage({"10.0.0.2:80", "10.0.0.2:7000"}, here), "http://10.0.0.2:80/");
  EXPECT_EQ(LinkToPage({"[fd00::2]:80", "[fd00::2]:7000"}, here), "http://[fd00::2]:80/");
}

TEST(PageAddressTest, AnInvalidAddressIsNotLinkedTo) {
  for (const char* page : {"", "x", "evil.example.com:80", "10.0.0.1", "javascript:1"}) {
    EXPECT_EQ(LinkToPage({page, "10.0.0.1:7000"}, {"127.0.0.1:1", "10.0.0.1:7000"}), "") << page;
  }
}

}  // namespace
}  // namespace tokamak::daemon
