#include "lib/os/sockets/name_lookup.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/os/epoll_loop.h"

namespace tokamak::os {
namespace {

constexpr base::Duration kLookupPatience = base::Seconds(60);

class NameLookupTest : public testing::Test {
 protected:
  absl::StatusOr<NameLookup::Addresses> Lookup(const std::string& host) {
    absl::StatusOr<NameLookup::Addresses> result = absl::InternalError("no answer");
    bool answered = false;
    const base::Pending lookup = names_.Lookup(host, [&](absl::StatusOr<NameLookup::Addresses> addresses) {
      result = std::move(addresses);
      answered = true;
    });
    EXPECT_FALSE(answered);
    loop_.RunUntil([&] { return answered; }, loop_.Now() + kLookupPatience);
    return result;
  }

  EpollLoop loop_;
  NameLookup names_{loop_};
};

TEST_F(NameLookupTest, AnAddressIsItsOwnAnswer) {
  EXPECT_EQ(*Lookup("127.0.0.1"), NameLookup::Addresses{"127.0.0.1"});
  EXPECT_EQ(*Lookup("::1"), NameLookup::Addresses{"::1"});
  EXPECT_TRUE(IsIpAddress("10.0.0.1"));
  EXPECT_FALSE(IsIpAddress("localhost"));
}

TEST_F(NameLookupTest, ANameHasAddresses) {
  const auto addresses = Lookup("localhost");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  for (const std::string& address : *addresses) EXPECT_TRUE(IsIpAddress(address)) << address;
}

TEST_F(NameLookupTest, AnUnknownNameIsReported) {
  const absl::Status status = Lookup("no-such-host.invalid").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(status.message().empty());
}

TEST_F(NameLookupTest, AllAskersOfOneNameAreAnsweredExceptDroppedOnes) {
  std::vector<base::Pending> calls;
  std::vector<int> answered(3, 0);
  for (size_t i = 0; i < answered.size(); ++i) {
    calls.push_back(names_.Lookup("localhost", [&answered, i](const auto&) { ++answered[i]; }));
  }
  calls[1].reset();
  EXPECT_TRUE(loop_.RunUntil([&] { return answered[0] + answered[2] == 2; }, loop_.Now() + kLookupPatience));
  EXPECT_EQ(answered[1], 0);
}

TEST_F(NameLookupTest, LookupsBeyondTheBoundAreRefused) {
  std::vector<base::Pending> calls;
  size_t answered = 0;
  for (size_t i = 0; i < NameLookup::kMaxLookups; ++i) {
    const std::string host = "no-such-host-" + std::to_string(i) + ".invalid";
    calls.push_back(names_.Lookup(host, [&](const auto&) { ++answered; }));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Lookup("one-more.invalid").status()));
  EXPECT_TRUE(loop_.RunUntil([&] { return answered == NameLookup::kMaxLookups; }, loop_.Now() + kLookupPatience));
}

TEST_F(NameLookupTest, ALookupMayBeDroppedWhileItRuns) {
  auto names = std::make_unique<NameLookup>(loop_);
  const base::Pending lookup = names->Lookup("localhost", [](const auto&) { FAIL(); });
  names.reset();
  loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(20));
}

}  // namespace
}  // namespace tokamak::os
