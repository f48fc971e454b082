#include "lib/verbs/user/sysfs_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::verbs::user {
namespace {

// Paths below the folder, and what is in them.
using Tree = std::map<std::string, std::string>;

void AddDevice(const Identity& device, Tree* tree) {
  const std::string verbs = absl::StrCat("class/infiniband_verbs/uverbs", device.index, "/");
  (*tree)[verbs + "ibdev"] = device.name;
  (*tree)[verbs + "abi_version"] = "2";
  (*tree)[verbs + "dev"] = absl::StrCat(kUverbsMajor, ":", kFirstUverbsMinor + device.index);
  const std::string own = absl::StrCat("class/infiniband/", device.name, "/");
  (*tree)[own + "node_type"] = "1: CA";
  (*tree)[own + "node_guid"] = device.GuidText();
  (*tree)[own + "sys_image_guid"] = device.GuidText();
  (*tree)[own + "node_desc"] = device.name;
  (*tree)[own + "fw_ver"] = "";
  (*tree)[own + "device/net/" + device.netdev + "/dev_port"] = "0";
  const std::string port = own + "ports/1/";
  (*tree)[port + "gids/0"] = device.GidText();
  (*tree)[port + "gid_attrs/types/0"] = "RoCE v2";
  (*tree)[port + "gid_attrs/ndevs/0"] = device.netdev;
  (*tree)[port + "pkeys/0"] = "0xffff";
  (*tree)[port + "state"] = "4: ACTIVE";
  (*tree)[port + "phys_state"] = "5: LinkUp";
  (*tree)[port + "link_layer"] = "Ethernet";
  (*tree)[port + "rate"] = "25 Gb/sec (1X EDR)";
  (*tree)[port + "lid"] = "0x0";
  (*tree)[port + "sm_lid"] = "0x0";
  (*tree)[port + "lid_mask_count"] = "0";
  (*tree)[port + "cap_mask"] = "0x04010000";
}

// Nobody needs so long to make the folder, and hardly a program that found the name taken runs so long.
constexpr time_t kLeftOver = 24 * 3600;  // seconds

// FNV-1a.
uint64_t HashOf(const Tree& tree) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [path, content] : tree) {
    for (const char c : path + "\n" + content + "\n") hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

bool MakeFoldersOf(std::string path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    path[at] = '\0';
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
    path[at] = '/';
  }
  return true;
}

bool WriteFile(const std::string& path, const std::string& content) {
  const os::FileDescriptor file(open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600));
  const std::string line = content + "\n";
  return file.valid() && write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

int RemoveEntry(const char* path, const struct stat*, int, FTW*) { return remove(path); }

// Whether `folder` is ours, and only ours to write.
bool IsOwn(const std::string& folder) {
  struct stat found {};
  return lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
         (found.st_mode & 0022) == 0;
}

// Of a process that was killed while it made its folder.
void RemoveLeftovers(const std::string& parent, const std::string& prefix) {
  DIR* const folder = opendir(parent.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const absl::string_view name = entry->d_name;
    if (!absl::StartsWith(name, prefix) || !absl::StrContains(name, '.')) continue;
    const std::string path = absl::StrCat(parent, "/", name);
    struct stat found {};
    if (lstat(path.c_str(), &found) != 0 || found.st_uid != geteuid()) continue;
    if (time(nullptr) - found.st_mtime < kLeftOver) continue;
    nftw(path.c_str(), RemoveEntry, 8, FTW_DEPTH | FTW_PHYS);
  }
  closedir(folder);
}

}  // namespace

absl::StatusOr<std::string> MakeSysfsTree(const std::string& parent, absl::Span<const Identity> devices) {
  Tree tree;
  tree["class/infiniband_verbs/abi_version"] = "6";
  tree["class/misc/rdma_cm/abi_version"] = "4";
  for (const Identity& device : devices) AddDevice(device, &tree);

  const std::string prefix = absl::StrCat("tokamak-verbs-", geteuid(), "-");
  const std::string name = absl::StrCat(parent, "/", prefix, absl::Hex(HashOf(tree)));
  if (IsOwn(name)) return name;
  RemoveLeftovers(parent, prefix);
  std::string made = name + ".XXXXXX";
  if (mkdtemp(made.data()) == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("make a folder in ", parent));
  for (const auto& [path, content] : tree) {
    const std::string whole = made + "/" + path;
    if (!MakeFoldersOf(whole) || !WriteFile(whole, content)) return absl::ErrnoToStatus(errno, whole);
  }
  // Another process may have been faster: its folder is the same.
  if (rename(made.c_str(), name.c_str()) == 0) return name;
  if (!IsOwn(name)) return made;
  nftw(made.c_str(), RemoveEntry, 8, FTW_DEPTH | FTW_PHYS);
  return name;
}

}  // namespace tokamak::verbs::user
