// Costs of one Get of a small object of another node, counted in real daemons: context switches,
// packets, system calls. Unlike times, which a busy machine changes, these are bounds.
//
//   bazel test //tests/daemon:daemon_test --test_filter=ShortWay* --test_output=all
//
// prints the counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/daemon/tokd_process.h"
#include "tests/support/test_devices.h"

namespace tokamak::daemon {
namespace {

constexpr int kWarmUp = 50;
constexpr int kGets = 200;
constexpr int kBatches = 5;
constexpr size_t kSize = 64;
constexpr double kCallsForProgram = 2;  // its request is received, and answered

// By all threads of the process: how often one went to sleep to wait for something.
uint64_t VoluntarySwitches(pid_t process) {
  constexpr absl::string_view kName = "voluntary_ctxt_switches:";
  uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator(absl::StrCat("/proc/", process, "/task"))) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      absl::string_view value = line;
      uint64_t switches = 0;
      if (!absl::ConsumePrefix(&value, kName)) continue;
      EXPECT_TRUE(absl::SimpleAtoi(value, &switches)) << line;
      sum += switches;
    }
  }
  return sum;
}

struct Costs {
  double switches = 0;
  double packets = 0;
  // All system calls that strace shows: the loops' waits, the software NICs' sendmmsg and recvmmsg,
  // and recvmsg and sendmsg for the program.
  double calls = 0;

  Costs operator-(const Costs& other) const {
    return {switches - other.switches, packets - other.packets, calls - other.calls};
  }
};

class ShortWayTest : public testing::Test {
 protected:
  // The holder has the directory, too.
  ShortWayTest() {
    if (!testing_support::OnSoftwareNic()) return;
    holder_.AwaitReady();
    asker_ = std::make_unique<TokdProcess>(folder_, 2, DirectoryOfNode1());
    asker_->AwaitReady();
  }

  Costs Now(Client& one, Client& two) const {
    Costs now;
    now.switches = double(VoluntarySwitches(holder_.pid()) + VoluntarySwitches(asker_->pid()));
    for (Client* client : {&one, &two}) {
      now.packets += double(Number(*client, "udp_packets_sent_total"));
      for (const char* name : {"loop_waits_total", "udp_send_calls_total", "udp_receive_calls_total"}) {
        now.calls += double(Number(*client, name));
      }
    }
    return now;
  }

  static ObjectId Id(int i) { return ObjectId::FromName(absl::StrCat("small", i)); }
  static void PutAll(Client& one) {
    for (int i = 0; i < kWarmUp + kBatches * kGets; ++i) ASSERT_TRUE(one.Put(Id(i), Pattern(kSize, 1)).ok());
  }
  static void GetSome(Client& two, int first, int count) {
    for (int i = first; i < first + count; ++i) ASSERT_TRUE(two.Get(Id(i), kPatience).ok());
  }

  ShortFolder folder_;
  TokdProcess holder_{folder_, 1, {}};
  std::unique_ptr<TokdProcess> asker_;
};

TEST_F(ShortWayTest, AGetOfASmallObjectWakesFewThreads) {
  if (!testing_support::OnSoftwareNic()) GTEST_SKIP() << "counts the software NIC's packets";
  Client one = holder_.Connect(), two = asker_->Connect();
  PutAll(one);
  GetSome(two, 0, kWarmUp);
  // The least of some batches: what a busy machine adds is not the daemons'.
  Costs each{1e9, 1e9, 1e9};
  for (int batch = 0; batch < kBatches; ++batch) {
    const Costs before = Now(one, two);
    GetSome(two, kWarmUp + batch * kGets, kGets);
    const Costs all = Now(one, two) - before;
    each.switches = std::min(each.switches, all.switches / kGets);
    each.packets = std::min(each.packets, all.packets / kGets);
    each.calls = std::min(each.calls, all.calls / kGets + kCallsForProgram);
  }
  std::cout << "a get takes " << each.switches << " context switches, " << each.packets << " packets, " << each.calls
            << " system calls, at both nodes\n";
  EXPECT_LE(each.switches, 7);
  EXPECT_LE(each.packets, 8);
  EXPECT_LE(each.calls, 24);
}

TEST_F(ShortWayTest, AGetOfManySmallObjectsOfAnotherHolderTakesFewPackets) {
  constexpr int kTogether = 64, kTimes = 10;
  if (!testing_support::OnSoftwareNic()) GTEST_SKIP() << "counts the software NIC's packets";
  TokdProcess third(folder_, 3, DirectoryOfNode1());
  third.AwaitReady();
  Client one = holder_.Connect(), two = asker_->Connect(), three = third.Connect();
  for (int i = 0; i < kTogether * (kTimes + 1); ++i) ASSERT_TRUE(three.Put(Id(i), Pattern(kSize, 1)).ok());
  ASSERT_TRUE(three.Delete(Id(kTogether * (kTimes + 1) - 1)).ok()) << "and all is announced";
  const auto get = [&](int time) {
    std::vector<ObjectId> ids;
    for (int i = 0; i < kTogether - 1; ++i) ids.push_back(Id(time * kTogether + i));
    for (const auto& buffer : two.Get(ids, kPatience)) ASSERT_TRUE(buffer.ok()) << buffer.status();
  };
  const auto packets = [&] {
    double sum = 0;
    for (Client* client : {&one, &two, &three}) sum += double(Number(*client, "udp_packets_sent_total"));
    return sum;
  };
  get(kTimes);  // the first makes the connection
  double each = 1e9;
  for (int time = 0; time < kTimes; ++time) {
    const double before = packets();
    get(time);
    each = std::min(each, packets() - before);
  }
  std::cout << "a get of " << kTogether - 1 << " objects takes " << each << " packets, at all nodes\n";
  EXPECT_LE(each, 24);
}

}  // namespace
}  // namespace tokamak::daemon
