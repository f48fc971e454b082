// SysfsTree is the part of /sys in which rdma-core and others look for RDMA devices, as a folder of
// ordinary files: class/infiniband, class/infiniband_verbs and class/misc/rdma_cm, as the kernel
// has them. Beside them is dev/infiniband, for who lists that.
//
// The folder is of one user, for all to read, and named after what is in it: all processes with the
// same devices share one, and the last of them that ends removes it. Who uses it has a lock of it
// (flock(2)), which also keeps away cleaners of temporary files that look at that. What one that
// was killed left, or somebody else removed, the next one makes whole.
//
// Thread rule: none but for whole paths, which are any thread's.
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

// The numbers of device files: /dev/infiniband/uverbs0 and so on, and rdma_cm.
constexpr unsigned kUverbsMajor = 231;
constexpr unsigned kFirstUverbsMinor = 192;

class SysfsTree final {
 public:
  // Below `parent`. Errors: what the file system says.
  static absl::StatusOr<std::unique_ptr<SysfsTree>> Open(const std::string& parent, absl::Span<const Identity> devices);
  SysfsTree(const SysfsTree&) = delete;
  SysfsTree& operator=(const SysfsTree&) = delete;
  ~SysfsTree();

  // What stands for /sys.
  const std::string& path() const { return path_; }

  // Whether it is there still, and this user's: a process may give up its rights.
  bool is_there() const;

  // Makes again what is missing of it.
  absl::Status Complete() const;

 private:
  // Paths below the folder, and what is in them.
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
