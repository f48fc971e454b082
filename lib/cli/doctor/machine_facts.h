// The facts that decide whether RDMA can work on a machine: limits, kernel modules, device nodes,
// the container around us. Facts only; machine_checks.h judges them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/cli/doctor/system_files.h"

namespace tokamak::cli::doctor {

constexpr uint64_t kUnlimited = UINT64_MAX;

// A file of /dev/infiniband.
struct DeviceNode {
  std::string name;  // "uverbs0", "rdma_cm"
  bool may_open = false;
  std::string device{};  // which it opens, "rxe0"; empty: not reported, or rdma_cm, which is for all
};

struct MachineFacts {
  uint64_t memory = 0;  // bytes of the machine; 0: not known
  // Memory that a process may lock, bytes; kUnlimited.
  uint64_t lock_limit = 0;
  uint64_t lock_limit_hard = 0;
  uint64_t descriptor_limit_hard = 0;  // kUnlimited; 0: not known. tokd raises its soft limit to it
  bool locks_without_limit = false;    // CAP_IPC_LOCK, outside of any user namespace

  uint64_t huge_page_size = 0;  // bytes; 0: the kernel has none
  uint64_t huge_pages = 0;      // reserved
  uint64_t huge_pages_free = 0;

  bool verbs_loaded = false;   // ib_uverbs
  bool cm_loaded = false;      // rdma_ucm
  bool has_soft_roce = false;  // this kernel's modules include rdma_rxe, or it is loaded
  std::vector<DeviceNode> nodes;
  // Cards that look like RDMA hardware, with the module that would drive them: "mlx5_ib for
  // 0000:3b:00.0".
  std::vector<std::string> cards;

  std::string container;                         // "a Docker container"; empty: none that we know of
  bool in_initial_network = true;                // false: in a network namespace of its own
  std::optional<uint64_t> receive_buffer_limit;  // net.core.rmem_max, bytes; none: not shown in this namespace
  bool exceeds_buffer_limit = false;             // CAP_NET_ADMIN
};

MachineFacts ReadMachine(const SystemFiles& files);

}  // namespace tokamak::cli::doctor
