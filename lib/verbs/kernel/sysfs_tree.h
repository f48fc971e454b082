// SysfsTree is the part of /sys where rdma-core and others look for RDMA devices, as a folder of
// ordinary files: class/infiniband, class/infiniband_verbs and class/misc/rdma_cm, as the kernel
// has them. Beside them is dev/infiniband, for programs that list it.
//
// The folder belongs to one user, for all to read, and is named after its content: all processes
// with the same devices share one. Each holds a lock on it (flock(2)), which also keeps away
// cleaners of temporary files that respect locks. The last process to end removes it; the next one
// completes what a killed one left incomplete, or somebody else removed.
//
// Thread rule: none, except for whole paths, which are any thread's.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/kernel/user_device.h"

namespace tokamak::verbs::kernel {

constexpr unsigned kUverbsMajor = 231;
constexpr unsigned kFirstUverbsMinor = 192;

class SysfsTree final {
 public:
  // Makes or shares the folder below `parent`. Errors are the file system's.
  static absl::StatusOr<std::unique_ptr<SysfsTree>> Open(const std::string& parent, absl::Span<const Identity> devices);
  SysfsTree(const SysfsTree&) = delete;
  SysfsTree& operator=(const SysfsTree&) = delete;
  ~SysfsTree();

  // Replaces /sys.
  const std::string& path() const { return path_; }

  // True if it is still there, and this user's: a process may give up its rights.
  bool is_there() const;

  absl::Status Complete() const;

 private:
  // By path below the folder.
  using Files = std::map<std::string, std::string>;

  SysfsTree(std::string path, Files files, os::FileDescriptor folder)
      : path_(std::move(path)), files_(std::move(files)), folder_(std::move(folder)) {}

  static Files FilesOf(absl::Span<const Identity> devices);
  static absl::StatusOr<std::unique_ptr<SysfsTree>> Share(const std::string& path, const Files& files);
  static absl::StatusOr<std::unique_ptr<SysfsTree>> Make(const std::string& path, const Files& files);
  bool IsStillAt(const std::string& path) const;

  std::string path_;
  const Files files_;
  const os::FileDescriptor folder_;  // locked
};

}  // namespace tokamak::verbs::kernel
