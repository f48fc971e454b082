// Report is all that tok doctor found, on one screen or as JSON, and whether RDMA works here.
//
// Law: it works when nothing of the machine failed, at least one device has no failed finding, or
// each where they were named, and nothing failed with the peer, where one was named. A sick device
// that nobody named is shown beside a healthy one, but does not make the machine sick.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cli/doctor/finding.h"

namespace tokamak::cli::doctor {

// One entry of a device's GID table.
struct GidLine {
  uint32_t index = 0;
  std::string gid;
  std::string type;    // "RoCE v2"
  std::string netdev;  // empty: none
  bool chosen = false;
  std::string remark;  // why it was chosen, or why not
};

struct DeviceReport {
  std::string name;   // as for --device: "ibv:rxe0"
  std::string about;  // "rxe on v0"; may be empty
  std::vector<Finding> findings;
  std::vector<GidLine> gids;
  uint32_t netdev_mtu = 0;  // bytes, of the network device below it; 0: not known
};

struct Report {
  uint64_t store = 0;  // bytes, what memlock and huge pages were held against
  std::vector<Finding> machine;
  std::vector<DeviceReport> devices;
  bool named = false;              // the devices were: all of them are wanted
  bool by_tcp = false;             // connections were made as by tokd --cm tcp
  std::string fabric;              // with these flags, too: "--service-level 3"
  std::string peer;                // its address; empty: none was named
  std::vector<Finding> with_peer;  // of the first device that works
};

bool AnyFailed(const std::vector<Finding>& findings);

// The first device that works; null where there is none.
const DeviceReport* WorkingDevice(const Report& report);

bool Works(const Report& report);

// The flags of a tokd that uses what was found to work; empty where nothing was.
std::string FlagsForTokd(const Report& report);

// For people; lines are at most about 110 characters.
std::string FormatReport(const Report& report);

// For programs: {"works", "device" (as for tokd --device), "cm", "store_bytes", "machine":
// [finding], "devices": [{"name", "about", "works", "findings": [finding], "gids": [gid]}], "peer",
// "with_peer": [finding]}; a finding is {"check", "verdict", "seen", "advice", "numbers"}.
std::string ReportToJson(const Report& report);

}  // namespace tokamak::cli::doctor
