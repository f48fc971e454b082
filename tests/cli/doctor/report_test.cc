#include "lib/cli/doctor/report.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli::doctor {
namespace {

using nlohmann::json;

Report HealthyReport() {
  Report report;
  report.store = 512 << 20;
  report.machine = {Named("modules", Ok("all are loaded")), Named("huge pages", NotApplicable("none reserved"))};
  DeviceReport device;
  device.name = "ibv:rxe0";
  device.about = "rdma_rxe on v0";
  device.findings = {Named("link", Ok("up")), Named("gid", Ok("index 1"))};
  device.gids = {{0, "fe80::1", "RoCE v2", "v0", false, "link-local IPv6: IPv4 comes first"},
                 {1, "10.0.0.1", "RoCE v2", "v0", true, "RoCE v2, IPv4, net device v0 is up"}};
  report.devices = {device};
  return report;
}

DeviceReport Phantom() {
  DeviceReport device;
  device.name = "ibv:rxe1";
  device.findings = {Named("use", Failed("'open' never returned", "remove it"))};
  return device;
}

TEST(ReportTest, AMachineAndADeviceThatAreWellWork) {
  const Report report = HealthyReport();
  EXPECT_TRUE(Works(report));
  EXPECT_EQ(WorkingDevice(report)->name, "ibv:rxe0");
}

TEST(ReportTest, APhantomBesideAHealthyDeviceDoesNotMatter) {
  Report report = HealthyReport();
  report.devices.insert(report.devices.begin(), Phantom());
  EXPECT_TRUE(Works(report));
  EXPECT_EQ(WorkingDevice(report)->name, "ibv:rxe0");
}

TEST(ReportTest, OfNamedDevicesEachMustWork) {
  Report report = HealthyReport();
  report.named = true;
  EXPECT_TRUE(absl::StrContains(FormatReport(report), "it works: tokd --device ibv:rxe0\n"));
  report.by_tcp = true;
  EXPECT_TRUE(absl::StrContains(FormatReport(report), "it works: tokd --device ibv:rxe0 --cm tcp\n"));
  report.devices.push_back(Phantom());
  EXPECT_FALSE(Works(report));
  EXPECT_TRUE(absl::StrContains(FormatReport(report), "it does not work: see what failed"));
  EXPECT_TRUE(json::parse(ReportToJson(report))["device"].is_null());
}

TEST(ReportTest, OnlyPhantomsOrNoDevicesDoNotWork) {
  Report report = HealthyReport();
  report.devices = {Phantom()};
  EXPECT_FALSE(Works(report));
  EXPECT_EQ(WorkingDevice(report), nullptr);
  report.devices.clear();
  EXPECT_FALSE(Works(report));
}

TEST(ReportTest, AFailureOfTheMachineCountsWhateverTheDevices) {
  Report report = HealthyReport();
  report.machine.push_back(Named("memlock", Failed("8 MiB", "more")));
  EXPECT_FALSE(Works(report));
  EXPECT_TRUE(absl::StrContains(FormatReport(report), "it does not work: see what failed"));
}

TEST(ReportTest, AFailureWithThePeerCountsToo) {
  Report report = HealthyReport();
  report.peer = "host2";
  report.with_peer = {Named("mtu", Warning("differs", "make them equal"))};
  EXPECT_TRUE(Works(report));
  report.with_peer.push_back(Named("connection", Failed("none", "firewall")));
  EXPECT_FALSE(Works(report));
  EXPECT_TRUE(absl::StrContains(FormatReport(report), "it does not work with host2"));
}

TEST(ReportTest, ThePageHasEverythingOnce) {
  Report report = HealthyReport();
  report.devices.push_back(Phantom());
  EXPECT_EQ(FormatReport(report),
            "this machine, for a store of 512 MiB\n"
            "  ok       modules        all are loaded\n"
            "  -        huge pages     none reserved\n"
            "ibv:rxe0, rdma_rxe on v0\n"
            "  ok       link           up\n"
            "  ok       gid            index 1\n"
            "                               0  RoCE v2  fe80::1   v0  link-local IPv6: IPv4 comes first\n"
            "                            *  1  RoCE v2  10.0.0.1  v0  RoCE v2, IPv4, net device v0 is up\n"
            "ibv:rxe1\n"
            "  failed   use            'open' never returned\n"
            "                          -> remove it\n"
            "it works: tokd --device ibv:rxe0\n");
}

TEST(ReportTest, LongSentencesAreWrappedUnderTheirColumn) {
  Report report;
  std::string seen, advice;
  for (int word = 0; word < 60; ++word) seen += "seen ", advice += "advice ";
  report.machine = {Named("memlock", Failed(seen, advice))};
  const std::string text = FormatReport(report);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) EXPECT_LE(line.size(), 114u) << line;
  EXPECT_TRUE(absl::StrContains(text, "\n                          seen seen"));
  EXPECT_TRUE(absl::StrContains(text, "\n                          -> advice advice"));
  EXPECT_TRUE(absl::StrContains(text, "\n                             advice advice"));
}

TEST(ReportTest, JsonHasVerdictsNumbersAndTheGidTable) {
  Report report = HealthyReport();
  report.devices[0].findings[0].numbers = {{"active_bytes", 4096}};
  const json whole = json::parse(ReportToJson(report));
  EXPECT_EQ(whole["works"], true);
  EXPECT_EQ(whole["device"], "ibv:rxe0");
  EXPECT_EQ(whole["store_bytes"], 512 << 20);
  EXPECT_EQ(whole["machine"][1]["verdict"], "not applicable");
  EXPECT_EQ(whole["devices"][0]["findings"][0]["numbers"]["active_bytes"], 4096);
  EXPECT_EQ(whole["devices"][0]["gids"][1]["chosen"], true);
  EXPECT_EQ(whole["devices"][0]["gids"][1]["gid"], "10.0.0.1");
  EXPECT_EQ(whole["peer"], "");
}

TEST(ReportTest, JsonOfAMachineThatDoesNotWorkNamesNoDevice) {
  Report report = HealthyReport();
  report.devices = {Phantom()};
  const json whole = json::parse(ReportToJson(report));
  EXPECT_EQ(whole["works"], false);
  EXPECT_TRUE(whole["device"].is_null());
  EXPECT_EQ(whole["devices"][0]["works"], false);
  EXPECT_EQ(whole["devices"][0]["findings"][0]["advice"], "remove it");
}

TEST(ReportTest, WhatIsNoTextInAProvidersWordsDoesNotBreakJson) {
  Report report = HealthyReport();
  report.machine.push_back(Named("modules", Ok("\xff\xfe")));
  EXPECT_TRUE(json::accept(ReportToJson(report)));
}

}  // namespace
}  // namespace tokamak::cli::doctor
