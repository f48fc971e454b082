// SPDX-License-Identifier: GPL-2.0-only
//
// The example runs, tells what arithmetic says, and is the one that the documentation shows; the
// application that it uses.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "ns3/boolean.h"
#include "ns3/simulator.h"
#include "ns3/uinteger.h"
#include "sim/ns3/roce_switch.h"
#include "sim/ns3/roce_write_application.h"
#include "tests/sim/ns3/star_fixture.h"
#include "tests/support/command_output.h"

namespace tokamak::sim {
namespace {

using testing::HasSubstr;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Returns the program's output, and its exit code behind it.
std::string RunExample(const std::string& arguments) {
  return support::OutputOf("sim/ns3/examples/two_hosts " + arguments + " 2>&1; echo exit $?");
}

TEST(ExampleTest, TheExamplePrintsTheDocumentedOutput) {
  const std::string output = RunExample("--bytes=12288");
  EXPECT_THAT(output, HasSubstr("exit 0\n"));
  // The largest store and forward: all three packets, and the first again; then the
  // acknowledgement.
  EXPECT_THAT(output, HasSubstr("WRITE 0 took 5353.28 ns\n")) << "(4194 + 4194 + 2 x 4178 + 172) x 80 ps + 4 us";
  EXPECT_THAT(Contents("docs/simulation.md"), HasSubstr(output.substr(0, output.find("exit 0"))));
}

TEST(ExampleTest, RatesAndDelaysCanBeGiven) {
  EXPECT_THAT(RunExample("--bytes=4096 --rate=25Gb/s --delay=700ns"), HasSubstr("WRITE 0 took 5539.2 ns\n"));
  EXPECT_THAT(RunExample("--help"), HasSubstr("--pcap"));
}

TEST(ExampleTest, TheDocumentationNamesEveryAttributeAndTraceSource) {
  const std::string text = Contents("docs/simulation.md");
  for (const ns3::TypeId& id : {RoceNetwork::GetTypeId(), RoceSwitch::GetTypeId(), RoceChannel::GetTypeId(),
                                RoceNetDevice::GetTypeId(), RoceNic::GetTypeId(), RoceWriteApplication::GetTypeId()}) {
    EXPECT_THAT(text, HasSubstr("`" + id.GetName() + "`"));
    for (size_t i = 0; i < id.GetAttributeN(); ++i) {
      EXPECT_THAT(text, HasSubstr("`" + id.GetAttribute(i).name + "`")) << id.GetName();
    }
    for (size_t i = 0; i < id.GetTraceSourceN(); ++i) {
      EXPECT_THAT(text, HasSubstr("`" + id.GetTraceSource(i).name + "`")) << id.GetName();
    }
  }
}

class RoceWriteApplicationTest : public StarTest {
 protected:
  // When each of its WRITEs completed.
  std::vector<ns3::Time> RunOne(const ns3::Ptr<RoceWriteApplication>& application) {
    std::vector<ns3::Time> times;
    application->SetNics(helper_->InstallNic(ports_.Get(0)), helper_->InstallNic(ports_.Get(1)));
    application->TraceConnectWithoutContext(
        "Completed", ns3::Callback<void, uint32_t, ns3::Time, ns3::Time>(
                         [&times](uint32_t, ns3::Time, ns3::Time finish) { times.push_back(finish); }));
    hosts_.Get(0)->AddApplication(application);
    ns3::Simulator::Stop(ns3::MilliSeconds(2));
    ns3::Simulator::Run();
    return times;
  }
};

TEST_F(RoceWriteApplicationTest, WritesFollowEachOtherFromItsStartOn) {
  Draw(2);
  const auto application = ns3::CreateObject<RoceWriteApplication>();
  application->SetAttribute("Bytes", ns3::UintegerValue(4096));
  application->SetAttribute("Count", ns3::UintegerValue(3));
  application->SetStartTime(ns3::MicroSeconds(10));
  const std::vector<ns3::Time> times = RunOne(application);
  ASSERT_EQ(times.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(times[i].GetPicoSeconds(), 10'000'000 + (i + 1) * 4'684'800);
  EXPECT_TRUE(application->Arrived());
}

TEST_F(RoceWriteApplicationTest, PhantomPayloadTakesTheSameTimeAndNoMemory) {
  Draw(2);
  const auto application = ns3::CreateObject<RoceWriteApplication>();
  application->SetAttribute("Bytes", ns3::UintegerValue(4096));
  application->SetAttribute("Phantom", ns3::BooleanValue(true));
  const std::vector<ns3::Time> times = RunOne(application);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].GetPicoSeconds(), 4'684'800);
}

TEST_F(RoceWriteApplicationTest, AnApplicationStopsAtItsStopTime) {
  Draw(2);
  const auto application = ns3::CreateObject<RoceWriteApplication>();
  application->SetAttribute("Bytes", ns3::UintegerValue(4096));
  application->SetAttribute("Count", ns3::UintegerValue(0));
  application->SetStopTime(ns3::MicroSeconds(100));
  EXPECT_EQ(RunOne(application).size(), 21u);  // of 4.6848 us each
}

}  // namespace
}  // namespace tokamak::sim
