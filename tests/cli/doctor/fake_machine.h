// FakeMachine is a folder laid out like the parts of /proc, /sys and /dev that tok doctor reads.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/cli/doctor/system_files.h"
#include "tests/support/short_folder.h"

namespace tokamak::cli::doctor {

class FakeMachine final {
 public:
  SystemFiles files() const { return SystemFiles(folder_.path()); }

  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder_.path() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text << "\n";
  }
  void Link(const std::string& path, const std::string& target) {
    const std::filesystem::path whole = folder_.path() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::filesystem::create_symlink(target, whole);
  }
  void Remove(const std::string& path) { std::filesystem::remove_all(folder_.path() + path); }

  // A machine on which everything is as it should be, but that it has no device: an ordinary user
  // with enough locked memory.
  void BeHealthy() {
    PutLockLimit("unlimited", "unlimited");
    Put("/proc/self/status", "Name:\ttok\nCapEff:\t0000000000000000\n");
    Put("/proc/self/uid_map", "         0          0 4294967295");
    Put("/proc/self/cgroup", "0::/user.slice");
    Put("/proc/meminfo",
        "MemTotal: 32000000 kB\nHugePages_Total:       0\nHugePages_Free:        0\n"
        "HugePages_Rsvd:        0\nHugepagesize:       2048 kB");
    Put("/proc/sys/kernel/osrelease", "6.1.0-56-amd64");
    Put("/proc/sys/net/core/netdev_max_backlog", "1000");
    Put("/proc/sys/net/core/rmem_max", "16777216");
    Put("/sys/class/misc/rdma_cm/abi_version", "4");
    Put("/sys/class/infiniband_verbs/abi_version", "6");
    Put("/dev/infiniband/rdma_cm", "");
  }

  void PutLockLimit(const std::string& soft, const std::string& hard) {
    Put("/proc/self/limits",
        absl::StrCat("Limit                     Soft Limit           Hard Limit           Units\n",
                     "Max open files            20000                20000                files\n",
                     "Max locked memory         ", soft, "              ", hard, "              bytes"));
  }

  void PutNetdev(const std::string& name, const std::string& state, int mtu, const std::string& hardware) {
    const std::string folder = absl::StrCat("/sys/class/net/", name);
    Put(folder + "/operstate", state);
    Put(folder + "/flags", state == "down" ? "0x1002" : "0x1003");
    Put(folder + "/mtu", absl::StrCat(mtu));
    Put(folder + "/address", hardware);
  }

  void PutGid(const std::string& device, int index, const std::string& gid, const std::string& type,
              const std::string& netdev) {
    const std::string port = absl::StrCat("/sys/class/infiniband/", device, "/ports/1");
    Put(absl::StrCat(port, "/gids/", index), gid);
    Put(absl::StrCat(port, "/gid_attrs/types/", index), type);
    Put(absl::StrCat(port, "/gid_attrs/ndevs/", index), netdev);
  }

  // Soft-RoCE on a network device that is up: a link-local GID and that of 10.0.0.1.
  void AddRxe(const std::string& name, const std::string& netdev) {
    PutNetdev(netdev, "up", 9000, "02:00:00:00:00:01");
    AddDevice(name, "rxe", "1: CA", "Ethernet");
    PutGid(name, 0, "fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2", netdev);
    PutGid(name, 1, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", netdev);
    PutGid(name, 2, "0000:0000:0000:0000:0000:0000:0000:0000", "", "");
    const std::string node = "uverbs" + name.substr(name.size() - 1);
    Put("/dev/infiniband/" + node, "");
    Put(absl::StrCat("/sys/class/infiniband_verbs/", node, "/ibdev"), name);
  }

  // A device with one port, ACTIVE, without any GID.
  void AddDevice(const std::string& name, const std::string& about, const std::string& node_type,
                 const std::string& link_layer) {
    const std::string folder = absl::StrCat("/sys/class/infiniband/", name);
    Put(folder + "/node_desc", about);
    Put(folder + "/node_type", node_type);
    PutState(name, "4: ACTIVE", "5: LinkUp");
    Put(folder + "/ports/1/link_layer", link_layer);
    Put(folder + "/ports/1/rate", "2.5 Gb/sec (1X SDR)");
  }

  void PutState(const std::string& device, const std::string& state, const std::string& physical) {
    const std::string port = absl::StrCat("/sys/class/infiniband/", device, "/ports/1");
    Put(port + "/state", state);
    Put(port + "/phys_state", physical);
  }

 private:
  testing_support::ShortFolder folder_;
};

}  // namespace tokamak::cli::doctor
