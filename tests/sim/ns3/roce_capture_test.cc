// SPDX-License-Identifier: GPL-2.0-only
//
// tshark's reading of the captures of ports.
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "ns3/uinteger.h"
#include "tests/sim/ns3/star_fixture.h"
#include "tests/support/command_output.h"

namespace tokamak::sim {
namespace {

using support::OutputOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class RoceCaptureTest : public StarTest {
 protected:
  void SetUp() override {
    if (OutputOf("command -v tshark").empty()) GTEST_SKIP() << "tshark is not installed";
  }

  // One line for each frame.
  std::vector<std::string> Tshark(const std::string& name, const std::string& arguments) const {
    std::istringstream output(OutputOf("HOME=" + testing::TempDir() + " tshark -n -r " + testing::TempDir() + "/" +
                                       name + " " + arguments + " 2>&1"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(output, line);) {
      if (line.find("Running as user") == std::string::npos) lines.push_back(line);
    }
    return lines;
  }
};

TEST_F(RoceCaptureTest, AWriteIsRoceWithItsTimesAddressesAndAcknowledgement) {
  Draw(2);
  helper_->EnablePcapAll(testing::TempDir() + "/write");
  OpenNics();
  writes_->Write(writes_->Connect(0, 1, 1024), 3000);
  RunUntilCompleted(1);
  writes_.reset();
  nics_.clear();
  ns3::Simulator::Destroy();  // closes the files

  // Three packets of a WRITE (first 6, middle 7, last 8), acknowledged (17) by the last.
  const std::string fields =
      "-o ip.check_checksum:TRUE -T fields -e frame.time_epoch -e ip.src -e ip.dst -e udp.dstport -e "
      "infiniband.bth.opcode -e infiniband.bth.psn -e frame.len -e ip.checksum.status -e _ws.malformed -E separator=,";
  const std::vector<std::string> lines = Tshark("write-0-0.pcap", fields);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines, ElementsAre("0.000000000,10.0.0.1,10.0.0.2,4791,6,100,1098,1,",
                                 HasSubstr(",10.0.0.1,10.0.0.2,4791,7,101,1082,1,"),
                                 HasSubstr(",10.0.0.1,10.0.0.2,4791,8,102,1010,1,"),
                                 HasSubstr(",10.0.0.2,10.0.0.1,4791,17,102,62,1,")));
  // The switch's port at the other host sees the same frames.
  EXPECT_THAT(Tshark("write-2-1.pcap", "-T fields -e infiniband.bth.opcode"), ElementsAre("6", "7", "8", "17"));
  EXPECT_THAT(Tshark("write-1-0.pcap", "-V"), Each(Not(HasSubstr("Malformed"))));
}

TEST_F(RoceCaptureTest, PausesMarksAndNotificationsAreSeen) {
  helper_->SetSwitchAttribute("EcnMinimum", ns3::UintegerValue(5'000));
  helper_->SetSwitchAttribute("EcnMaximum", ns3::UintegerValue(10'000));
  helper_->SetSwitchAttribute("Xoff", ns3::UintegerValue(15'000));
  helper_->SetSwitchAttribute("Xon", ns3::UintegerValue(10'000));
  Draw(4);
  helper_->EnablePcap(testing::TempDir() + "/incast.pcap", ports_.Get(1), false, true);
  OpenNics();
  Incast(200'000);
  writes_.reset();
  nics_.clear();
  ns3::Simulator::Destroy();
  const std::vector<std::string> lines = Tshark(
      "incast.pcap", "-T fields -e eth.dst -e macc.opcode -e infiniband.bth.opcode -e ip.dsfield.dscp -E separator=,");
  EXPECT_THAT(lines, Contains(HasSubstr("01:80:c2:00:00:01,0x0101")));
  EXPECT_THAT(lines, Contains(HasSubstr(",129,48"))) << "no congestion notification";
}

}  // namespace
}  // namespace tokamak::sim
