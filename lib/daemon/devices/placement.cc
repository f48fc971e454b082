#include "lib/daemon/devices/placement.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/os/process/processors.h"

namespace tokamak::daemon {

namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::vector<int> ProcessorsNear(const std::string& sysfs, absl::string_view name) {
  const std::string device = absl::StrCat(sysfs, "/class/infiniband/", name, "/device/");
  int node = -1;
  // Without a node the kernel lists all processors, or the bus's.
  if (!absl::SimpleAtoi(FirstLine(device + "numa_node"), &node) || node < 0) return {};
  return os::ParseProcessors(FirstLine(device + "local_cpulist"));
}

std::vector<int> PlaceNear(const std::vector<int>& near, const std::vector<int>& allowed) {
  std::vector<int> both;
  std::set_intersection(near.begin(), near.end(), allowed.begin(), allowed.end(), std::back_inserter(both));
  if (both == allowed) both.clear();
  return both;
}

}  // namespace tokamak::daemon
