// Two hosts, each a guest of the lab with a daemon of its own: `ci/softroce --hosts 2 -- THIS` runs
// this program on both. The first gets, the second has the objects.
//
//   TOKAMAK_TEST_OBJECTS   how many objects, 200 unless given
//   TOKAMAK_TEST_SEED      chooses the moment at which the second host is killed
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "tests/daemon/tokd_process.h"
#include "tests/faults/command.h"
#include "tests/faults/usage.h"
#include "tests/support/test_devices.h"

namespace tokamak::faults {
namespace {

using daemon::Eventually;
using daemon::Number;
using daemon::Pattern;
using daemon::TokdProcess;
using std::chrono::steady_clock;
using Got = Result<Buffer>;

constexpr std::chrono::seconds kDeadline(20);
// An answer travels through two processes of an emulated machine.
constexpr std::chrono::seconds kGrace(5);
constexpr std::chrono::seconds kLong(240);
constexpr int kMostMilliseconds = 3000;  // until the second host is killed

std::string Text(const char* variable) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? "" : given;
}

uint64_t WholeNumber(const char* variable, uint64_t otherwise) {
  uint64_t number = 0;
  return absl::SimpleAtoi(Text(variable), &number) ? number : otherwise;
}

ObjectId Id(uint64_t object) { return ObjectId::FromName(absl::StrCat("object ", object)); }

// Most are small; each protocol has some.
size_t SizeOf(uint64_t object) {
  base::Random random(object);
  constexpr uint64_t kMost[] = {100, 100, 4'000, 4'000, 20'000, 20'000, 60'000, 60'000, 300'000, 1 << 20};
  return random.Below(kMost[object % 10]) + 1;
}

std::vector<uint8_t> BytesOf(uint64_t object) { return Pattern(SizeOf(object), static_cast<uint8_t>(object * 7)); }

class TwoHostsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (WholeNumber("TOKAMAK_LAB_HOSTS", 1) < 2) GTEST_SKIP() << "skipped: one host; run it with ci/softroce --hosts 2";
    const bool first = Text("TOKAMAK_LAB_RANK") == "0";
    std::vector<std::string> flags = {"--memory", "256MiB"};
    if (!first) {
      flags.push_back("--directory");
      flags.push_back(absl::StrCat("tokd@", Text("TOKAMAK_LAB_PEERS"), ":7000"));
    }
    const auto before = UsageOfAll();
    ASSERT_TRUE(before.ok()) << before.status();
    before_ = *before;
    // The name in the cluster, and so the number, differs; the place is the host's own.
    flags.push_back("--name");
    flags.push_back(first ? "first" : "second");
    tokd_ = std::make_unique<TokdProcess>(folder_, 1, flags);
    ASSERT_NO_FATAL_FAILURE(tokd_->AwaitReady());
    getter_ = first;
  }

  void PutAll(uint64_t objects) {
    Client client = tokd_->Connect();
    for (uint64_t i = 0; i < objects; ++i) ASSERT_TRUE(client.Put(Id(i), BytesOf(i)).ok()) << i;
  }

  // The daemon ends well and the kernel keeps nothing of it.
  void End() {
    Client client = tokd_->Connect();
    for (const char* number : {"pins_of_peers", "pulls_running", "store_quarantined_bytes"}) {
      EXPECT_TRUE(Eventually([&] { return Number(client, number) == 0; })) << number;
    }
    const daemon::Ended ended = tokd_->Terminate();
    EXPECT_EQ(ended.status.code, 0) << ended.status.ToString() << "\n" << ended.text;
    EXPECT_TRUE(Eventually([&] {
      const auto after = UsageOfAll();
      return after.ok() && after->NoMoreThan(before_);
    }));
  }

  bool getter_ = false;
  daemon::ShortFolder folder_;
  Usage before_;
  std::unique_ptr<TokdProcess> tokd_;
};

TEST_F(TwoHostsTest, ObjectsOfMixedSizesArriveWhole) {
  const uint64_t objects = WholeNumber("TOKAMAK_TEST_OBJECTS", 200);
  const ObjectId all_came = ObjectId::FromName("all came");
  if (!getter_) {
    PutAll(objects);
    EXPECT_TRUE(tokd_->Connect().Get(all_came, kLong).ok());
    return End();
  }
  Client client = tokd_->Connect();
  uint64_t mismatches = 0, bytes = 0;
  const auto began = steady_clock::now();
  for (uint64_t i = 0; i < objects; ++i) {
    const auto protocol = i % 4 == 1   ? Protocol::kEager
                          : i % 4 == 2 ? Protocol::kRead
                          : i % 4 == 3 ? Protocol::kWrite
                                       : Protocol::kAuto;
    const Got got = client.Get(Id(i), kDeadline + kDeadline, {protocol});
    ASSERT_TRUE(got.ok()) << i << " of " << SizeOf(i) << " bytes: " << got.status();
    bytes += got->data().size();
    if (!daemon::Same(got->data(), BytesOf(i))) ++mismatches;
  }
  const std::chrono::duration<double> took = steady_clock::now() - began;
  std::cout << objects << " objects, " << bytes << " bytes in " << took.count() << " s, " << mismatches << " mismatches"
            << std::endl;
  EXPECT_EQ(mismatches, 0u);
  ASSERT_TRUE(client.Put(all_came, Pattern(1, 1)).ok());
  EXPECT_TRUE(Eventually([&] {
    const auto stat = client.Stat(all_came);
    return stat.ok() && stat->holders.size() == 2;
  }));
  End();
}

// At a moment that the seed chooses, while objects are on their way.
TEST_F(TwoHostsTest, AHostThatIsKilledLeavesEachGetWithRightBytesOrAnError) {
  constexpr uint64_t kObjects = 400;
  const ObjectId go = ObjectId::FromName("go");
  if (!getter_) {
    PutAll(kObjects);
    ASSERT_TRUE(tokd_->Connect().Put(go, Pattern(1, 1)).ok());
    (void)tokd_->Connect().Get(ObjectId::FromName("never"), kLong);  // it is killed in the meantime
    FAIL() << "this host was not killed";
  }
  Client client = tokd_->Connect();
  ASSERT_TRUE(client.Get(go, kLong).ok());
  base::Random random(WholeNumber("TOKAMAK_TEST_SEED", 1));
  const auto moment =
      steady_clock::now() + std::chrono::milliseconds(random.Below(static_cast<uint64_t>(kMostMilliseconds)));
  auto killed = std::async(std::launch::async, [moment] {
    std::this_thread::sleep_until(moment);  // a moment of the clock's is what is wanted
    return faults::Run({"lab-kill", "1"});
  });
  uint64_t right = 0, failed = 0;
  std::string said;
  // Once it is gone one error is as good as a hundred.
  for (uint64_t i = 0; i < kObjects && failed < 3; ++i) {
    const auto asked = steady_clock::now();
    const Got got = client.Get(Id(i), kDeadline);
    const std::chrono::duration<double> took = steady_clock::now() - asked;
    EXPECT_LE(took.count(), std::chrono::duration<double>(kDeadline + kGrace).count());
    if (got.ok()) {
      EXPECT_TRUE(daemon::Same(got->data(), BytesOf(i))) << i;
      ++right;
    } else {
      EXPECT_TRUE(got.status().code() == StatusCode::kDeadlineExceeded || got.status().code() == StatusCode::kNotFound)
          << got.status();
      EXPECT_FALSE(got.status().message().empty());
      said = got.status().message();
      ++failed;
    }
  }
  EXPECT_EQ(killed.get(), absl::OkStatus());
  std::cout << right << " objects came whole, " << failed << " gets failed: " << said << std::endl;
  // Objects that came are there, and the daemon goes on.
  ASSERT_TRUE(client.Put(ObjectId::FromName("after"), Pattern(1000, 1)).ok());
  End();
}

}  // namespace
}  // namespace tokamak::faults
