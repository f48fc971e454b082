// The RDMA devices that the kernel shows in /sys/class/infiniband, with their ports, GIDs and
// network devices. Reading them opens no device, so it also works where a device would hang, or may
// not be opened.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/cli/doctor/system_files.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/ibv/translation/gid.h"

namespace tokamak::cli::doctor {

// A network device. Absent where it is in another network namespace than we are.
struct NetdevFacts {
  std::string name;
  bool here = false;  // visible in our network namespace
  uint32_t mtu = 0;   // bytes
  bool up = false;    // switched on, and no cable is missing
  std::string state;  // "up", "down", "lowerlayerdown", "unknown" where the driver does not say
};

struct PortFacts {
  uint32_t number = 0;
  std::string state;     // "ACTIVE", "DOWN", "INIT", "ARMED"
  std::string physical;  // "LinkUp", "Polling", "Disabled"
  verbs::ibv::LinkKind link = verbs::ibv::LinkKind::kRoce;
  std::string rate;                        // "100 Gb/sec (4X EDR)"
  std::vector<verbs::ibv::GidEntry> gids;  // without empty entries
  NetdevFacts netdev;                      // RoCE and iWARP: below the port; its name may be empty
};

struct RdmaFacts {
  std::string name;    // "rxe0"
  std::string driver;  // "rdma_rxe", "siw", "mlx5_core"; empty: not reported
  std::vector<PortFacts> ports;
};

std::vector<RdmaFacts> ReadRdmaDevices(const SystemFiles& files);

}  // namespace tokamak::cli::doctor
