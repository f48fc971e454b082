// What one Get of a small object of another node costs, counted in real daemons: context switches,
// packets, system calls of the software NICs. Beside what is measured in time, which a busy machine
// changes, these are bounds.
//
//   bazel test //tests/daemon:daemon_test --test_filter=ShortWay* --test_output=all
//
// prints the counts.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/daemon/tokd_process.h"
#include "tests/support/test_devices.h"

namespace tokamak::daemon {
namespace {

constexpr int kWarmUp = 50;
constexpr int kGets = 200;
constexpr size_t kSize = 64;

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
  double calls = 0;  // of the software NICs, to send and to receive

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

  Costs Now(client::Client& one, client::Client& two) const {
    Costs now;
    now.switches = double(VoluntarySwitches(holder_.pid()) + VoluntarySwitches(asker_->pid()));
    for (client::Client* client : {&one, &two}) {
      now.packets += double(Number(*client, "udp_packets_sent_total"));
      now.calls += double(Number(*client, "udp_send_calls_total") + Number(*client, "udp_receive_calls_total"));
    }
    return now;
  }

  ShortFolder folder_;
  TokdProcess holder_{folder_, 1, {}};
  std::unique_ptr<TokdProcess> asker_;
};

TEST_F(ShortWayTest, AGetOfASmallObjectWakesFewThreads) {
  if (!testing_support::OnSoftwareNic()) GTEST_SKIP() << "counts the software NIC's packets";
  client::Client one = holder_.Connect(), two = asker_->Connect();
  const auto id = [](int i) { return base::ObjectId::FromName(absl::StrCat("small", i)); };
  for (int i = 0; i < kWarmUp + kGets; ++i) ASSERT_TRUE(one.Put(id(i), Pattern(kSize, 1)).ok());
  Costs before;
  for (int i = 0; i < kWarmUp + kGets; ++i) {
    if (i == kWarmUp) before = Now(one, two);
    ASSERT_TRUE(two.Get(id(i), kPatience).ok());
  }
  const Costs all = Now(one, two) - before;
  const Costs each{all.switches / kGets, all.packets / kGets, all.calls / kGets};
  std::cout << "a get takes " << each.switches << " context switches, " << each.packets << " packets, " << each.calls
            << " calls of the software NICs, at both nodes\n";
  EXPECT_LE(each.switches, 7);
  EXPECT_LE(each.packets, 12);
}

}  // namespace
}  // namespace tokamak::daemon
