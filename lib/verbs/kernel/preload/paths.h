// Redirects paths: those of RDMA devices to us, all others to the system.
//
// Thread rule: any thread.
#pragma once

#include <limits.h>
#include <sys/types.h>

#include <cstddef>

namespace tokamak::verbs::kernel::preload {

// A path for the system: one below /sys that is about RDMA, or /dev/infiniband, leads to our files.
class SystemPath final {
 public:
  explicit SystemPath(const char* path);
  const char* get() const { return path_; }

 private:
  void Map(const char* folder, const char* below);

  const char* path_;
  char mapped_[PATH_MAX];
};

// A device file of ours, or none.
struct DeviceFile {
  enum class Kind : unsigned char { kNone, kUverbs, kManager };
  Kind kind = Kind::kNone;
  size_t index = 0;  // kUverbs: uverbsN

  explicit operator bool() const { return kind != Kind::kNone; }
  dev_t number() const;  // of the character device
};
DeviceFile DeviceAt(const char* path);

}  // namespace tokamak::verbs::kernel::preload
