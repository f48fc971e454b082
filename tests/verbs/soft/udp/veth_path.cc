#include "tests/verbs/soft/udp/veth_path.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/os/own_network.h"

namespace tokamak::verbs::soft {
namespace {

// The kernel lets nothing out before a worker of its own has seen the carrier, which takes long on
// a busy machine.
bool AwaitCarrier(const char* interface) {
  return Shell(absl::StrCat("for i in $(seq 600); do case $(ip -o link show ", interface,
                            ") in *'state UP'*) exit 0;; esac; sleep 0.05; done; exit 1"));
}

// Returns the part that the kernel or the user lacks.
std::string MakeRight(const std::string& main_thread) {
  if (absl::Status s = tests::EnterOwnNetwork(); !s.ok()) return s.ToString();
  if (!Shell("ip link add right mtu 9000 type veth peer name left mtu 9000 netns " + main_thread)) return "veth";
  return Shell("ip address add 10.9.0.2/24 dev right && ip link set right up") ? "" : "an address";
}

std::string Skipped(const std::string& missing) {
  return missing.empty() ? "" : absl::StrCat("skipped: this kernel or user lacks ", missing);
}

}  // namespace

bool Shell(const std::string& command) { return std::system(("PATH=$PATH:/usr/sbin:/sbin; " + command).c_str()) == 0; }

std::string OpenVethPath(PathWorld& world, const DeviceOptions& options, const std::function<std::string()>& shape) {
  const absl::Status network = tests::EnterOwnNetwork();
  if (absl::IsUnavailable(network)) return std::string(network.message());
  EXPECT_EQ(network, absl::OkStatus());
  std::string missing;
  const std::string main_thread = absl::StrCat(getpid());
  const absl::Status right = world.Add(
      "10.9.0.2", [&] { missing = MakeRight(main_thread); }, options);
  if (!missing.empty()) return Skipped(missing);
  EXPECT_EQ(right, absl::OkStatus());
  const absl::Status left = world.Add(
      "10.9.0.1",
      [&] {
        EXPECT_TRUE(Shell("ip address add 10.9.0.1/24 dev left && ip link set left up"));
        EXPECT_TRUE(AwaitCarrier("left"));
        missing = shape();
      },
      options);
  if (missing.empty()) {
    EXPECT_EQ(left, absl::OkStatus());
  }
  return Skipped(missing);
}

}  // namespace tokamak::verbs::soft
