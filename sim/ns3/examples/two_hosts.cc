// SPDX-License-Identifier: GPL-2.0-only
//
// Two hosts and a switch: a WRITE of 32 KiB from one to the other, when it completed, and what the
// queue of the switch towards the receiver did meanwhile.
//
//   bazel run //sim/ns3/examples:two_hosts -- --bytes=65536 --delay=500ns --pcap=/tmp/two_hosts
#include <iostream>
#include <string>

#include "ns3/command-line.h"
#include "ns3/node-container.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"
#include "sim/ns3/roce_helper.h"
#include "sim/ns3/roce_write_application.h"

using tokamak::sim::Frame;

namespace {

void Queue(uint32_t change, const Frame& frame, uint64_t bytes) {
  std::cout << ns3::Simulator::Now().GetPicoSeconds() / 1e3 << " ns: " << (change > 0 ? "in " : "out") << " PSN "
            << frame.headers.psn << ", queue " << bytes << " B\n";
}

void Completed(uint32_t number, ns3::Time start, ns3::Time finish) {
  std::cout << "WRITE " << number << " took " << (finish - start).GetPicoSeconds() / 1e3 << " ns\n";
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t bytes = 32 << 10;
  std::string rate = "100Gb/s", delay = "1us", pcap;
  ns3::CommandLine arguments;
  arguments.AddValue("bytes", "of the WRITE", bytes);
  arguments.AddValue("rate", "of both cables", rate);
  arguments.AddValue("delay", "of both cables", delay);
  arguments.AddValue("pcap", "capture all ports, into files that begin with this", pcap);
  tokamak::sim::PrepareSimulator();
  arguments.Parse(argc, argv);

  ns3::NodeContainer hosts(2);
  ns3::NodeContainer switches(1);
  tokamak::sim::RoceHelper roce;
  roce.SetChannelAttribute("DataRate", ns3::StringValue(rate));
  roce.SetChannelAttribute("Delay", ns3::StringValue(delay));
  roce.InstallSwitch(switches);
  const ns3::NetDeviceContainer ports = roce.Install(hosts, switches.Get(0));
  if (!pcap.empty()) roce.EnablePcapAll(pcap);

  const auto to_receiver = switches.Get(0)->GetDevice(1);
  to_receiver->TraceConnectWithoutContext("Enqueue", ns3::MakeBoundCallback(&Queue, 1u));
  to_receiver->TraceConnectWithoutContext("Dequeue", ns3::MakeBoundCallback(&Queue, 0u));

  const auto write = ns3::CreateObject<tokamak::sim::RoceWriteApplication>();
  write->SetAttribute("Bytes", ns3::UintegerValue(bytes));
  write->SetNics(roce.InstallNic(ports.Get(0)), roce.InstallNic(ports.Get(1)));
  write->TraceConnectWithoutContext("Completed", ns3::MakeCallback(&Completed));
  hosts.Get(0)->AddApplication(write);

  ns3::Simulator::Run();
  const bool well = write->completed() == 1 && write->Arrived();
  ns3::Simulator::Destroy();
  return well ? 0 : 1;
}
