#include "lib/verbs/kernel/sysfs_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
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

namespace tokamak::verbs::kernel {
namespace {

void AddDevice(const Identity& device, std::map<std::string, std::string>* tree) {
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
  (*tree)[port + "sm_sl"] = "0";
  (*tree)[port + "lid_mask_count"] = "0";
  (*tree)[port + "cap_mask"] = "0x04010000";
}

// Longer than making the folder takes, or than a program runs that found the name taken.
constexpr time_t kLeftOver = 24 * 3600;  // seconds

// FNV-1a.
uint64_t HashOf(const std::map<std::string, std::string>& tree) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [path, content] : tree) {
    for (const char c : path + "\n" + content) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

// Whatever the umask: /sys is for all to read.
bool MakeFoldersOf(std::string path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    path[at] = '\0';
    if (mkdir(path.c_str(), 0700) == 0) {
      if (chmod(path.c_str(), 0755) != 0) return false;
    } else if (errno != EEXIST) {
      return false;
    }
    path[at] = '/';
  }
  return true;
}

bool Holds(const std::string& path, const std::string& content) {
  const os::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string found(content.size() + 1, '\0');
  return file.valid() && read(file.get(), found.data(), found.size()) == static_cast<ssize_t>(content.size()) &&
         found.compare(0, content.size(), content) == 0;
}

// Writes below `folder`. Other processes see the whole file or none.
bool WriteFile(const std::string& folder, const std::string& path, const std::string& content) {
  std::string aside = folder + "/XXXXXX";
  const os::FileDescriptor file(mkostemp(aside.data(), O_CLOEXEC));
  if (!file.valid()) return false;
  const bool written = write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
                       fchmod(file.get(), 0644) == 0 && rename(aside.c_str(), path.c_str()) == 0;
  if (!written) unlink(aside.c_str());
  return written;
}

int RemoveEntry(const char* path, const struct stat*, int, FTW*) { return remove(path); }

void RemoveFolder(const std::string& path) { nftw(path.c_str(), RemoveEntry, 8, FTW_DEPTH | FTW_PHYS); }

// Returns whether `folder` is ours, and only ours to write.
bool IsOwn(const std::string& folder) {
  struct stat found {};
  return lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
         (found.st_mode & 0022) == 0;
}

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
    RemoveFolder(path);
  }
  closedir(folder);
}

// Shells give low numbers to the files that they open.
constexpr int kLeastDescriptor = 100;

os::FileDescriptor OpenFolder(const std::string& path) {
  os::FileDescriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return folder;
  os::FileDescriptor aside(fcntl(folder.get(), F_DUPFD_CLOEXEC, kLeastDescriptor));
  return aside.valid() ? std::move(aside) : std::move(folder);
}

// A file system without locks keeps its folders.
void Lock(const os::FileDescriptor& folder) {
  while (flock(folder.get(), LOCK_SH) != 0 && errno == EINTR) {
  }
}

// Bounds the tries beside processes that begin and end at once, and make and remove the folder.
constexpr int kMostTries = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<SysfsTree>> SysfsTree::Open(const std::string& parent,
                                                           absl::Span<const Identity> devices) {
  const Files files = FilesOf(devices);
  const std::string prefix = absl::StrCat("tokamak-verbs-", geteuid(), "-");
  const std::string path = absl::StrCat(parent, "/", prefix, absl::Hex(HashOf(files)));
  RemoveLeftovers(parent, prefix);
  absl::StatusOr<std::unique_ptr<SysfsTree>> tree = absl::UnavailableError(path);
  for (int i = 0; i < kMostTries && absl::IsUnavailable(tree.status()); ++i) {
    tree = Share(path, files);
    if (absl::IsNotFound(tree.status())) tree = Make(path, files);
  }
  return tree;
}

// Shares an existing folder. kNotFound: none can be shared. kUnavailable: its last user has just
// removed it.
absl::StatusOr<std::unique_ptr<SysfsTree>> SysfsTree::Share(const std::string& path, const Files& files) {
  if (!IsOwn(path)) return absl::NotFoundError(path);
  os::FileDescriptor folder = OpenFolder(path);
  if (!folder.valid()) return absl::UnavailableError(path);
  Lock(folder);
  std::unique_ptr<SysfsTree> tree(new SysfsTree(path, files, std::move(folder)));
  if (!tree->IsStillAt(path)) return absl::UnavailableError(path);
  if (absl::Status s = tree->Complete(); !s.ok()) return s;
  return tree;
}

// Makes a new folder aside, then moves it into place. kUnavailable: another process was faster.
absl::StatusOr<std::unique_ptr<SysfsTree>> SysfsTree::Make(const std::string& path, const Files& files) {
  std::string aside = path + ".XXXXXX";
  if (mkdtemp(aside.data()) == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("make ", aside));
  os::FileDescriptor folder = OpenFolder(aside);
  if (!folder.valid()) return absl::ErrnoToStatus(errno, aside);
  Lock(folder);
  std::unique_ptr<SysfsTree> tree(new SysfsTree(aside, files, std::move(folder)));
  if (chmod(aside.c_str(), 0755) != 0) return absl::ErrnoToStatus(errno, aside);
  if (absl::Status s = tree->Complete(); !s.ok()) return s;
  if (rename(aside.c_str(), path.c_str()) == 0) {
    tree->path_ = path;
  } else if (IsOwn(path)) {
    return absl::UnavailableError(path);
  }
  return tree;
}

// A process that waits for the lock meanwhile finds the folder gone.
SysfsTree::~SysfsTree() {
  if (flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 || !IsStillAt(path_)) return;
  const std::string gone = absl::StrCat(path_, ".gone", getpid());
  const bool aside = rename(path_.c_str(), gone.c_str()) == 0;
  RemoveFolder(aside ? gone : path_);
}

bool SysfsTree::is_there() const { return IsOwn(path_) && IsStillAt(path_); }

bool SysfsTree::IsStillAt(const std::string& path) const {
  struct stat here {};
  struct stat there {};
  return fstat(folder_.get(), &here) == 0 && lstat(path.c_str(), &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

absl::Status SysfsTree::Complete() const {
  std::string made;  // the previous file's
  for (const auto& [name, content] : files_) {
    const std::string whole = path_ + "/" + name;
    if (Holds(whole, content)) continue;
    const std::string folder = whole.substr(0, whole.rfind('/'));
    if (folder != made && !MakeFoldersOf(whole)) return absl::ErrnoToStatus(errno, whole);
    if (!WriteFile(path_, whole, content)) return absl::ErrnoToStatus(errno, whole);
    made = folder;
  }
  return absl::OkStatus();
}

SysfsTree::Files SysfsTree::FilesOf(absl::Span<const Identity> devices) {
  Files files;
  files["class/infiniband_verbs/abi_version"] = "6";
  files["class/misc/rdma_cm/abi_version"] = "4";
  for (const Identity& device : devices) AddDevice(device, &files);
  for (auto& [name, content] : files) content += "\n";
  files["dev/infiniband/rdma_cm"] = "";
  for (const Identity& device : devices) files[absl::StrCat("dev/infiniband/uverbs", device.index)] = "";
  return files;
}

}  // namespace tokamak::verbs::kernel
