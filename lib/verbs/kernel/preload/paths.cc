#include "lib/verbs/kernel/preload/paths.h"

#include <sys/sysmacros.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/verbs/kernel/preload/program.h"
#include "lib/verbs/kernel/sysfs_tree.h"

namespace tokamak::verbs::kernel::preload {
namespace {

constexpr char kSysfs[] = "/sys";
constexpr const char* kOurs[] = {"/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class/misc/rdma_cm"};
constexpr char kDevices[] = "/dev/infiniband";
constexpr char kUverbs[] = "/dev/infiniband/uverbs";
constexpr char kManager[] = "/dev/infiniband/rdma_cm";

constexpr unsigned kMiscMajor = 10;
constexpr unsigned kManagerMinor = 58;

bool IsBelow(const char* path, const char* folder) {
  const size_t length = std::strlen(folder);
  return std::strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

}  // namespace

SystemPath::SystemPath(const char* path) : path_(path) {
  if (path == nullptr) return;
  if (IsBelow(path, kDevices)) Map(kDevices, path);
  if (std::strncmp(path, kSysfs, sizeof(kSysfs) - 1) != 0) return;
  for (const char* folder : kOurs) {
    if (IsBelow(path, folder)) Map(folder, path + sizeof(kSysfs) - 1);
  }
}

void SystemPath::Map(const char* folder, const char* below) {
  // A program that begins to look for devices must find all files.
  const std::string ours = SysfsFolder(/*whole=*/std::strcmp(path_, folder) == 0);
  if (ours.empty()) return;
  const int length = std::snprintf(mapped_, sizeof(mapped_), "%s%s", ours.c_str(), below);
  if (length < static_cast<int>(sizeof(mapped_))) path_ = mapped_;
}

dev_t DeviceFile::number() const {
  return kind == Kind::kUverbs ? makedev(kUverbsMajor, kFirstUverbsMinor + static_cast<unsigned>(index))
                               : makedev(kMiscMajor, kManagerMinor);
}

DeviceFile DeviceAt(const char* path) {
  DeviceFile file;
  if (path == nullptr || path[0] != '/' || path[1] != 'd') return file;
  if (std::strcmp(path, kManager) == 0) {
    file.kind = DeviceFile::Kind::kManager;
    return file;
  }
  if (std::strncmp(path, kUverbs, sizeof(kUverbs) - 1) != 0) return file;
  char* end = nullptr;
  const unsigned long index = std::strtoul(path + sizeof(kUverbs) - 1, &end, 10);  // NOLINT(runtime/int): strtoul's
  if (*end != '\0' || index >= DeviceCount()) return file;
  file.kind = DeviceFile::Kind::kUverbs;
  file.index = index;
  return file;
}

}  // namespace tokamak::verbs::kernel::preload
