// ShortFolder is a folder for one test, with a path that is short enough for the sockets in it.
//
// It lies in Bazel's $TEST_TMPDIR, which goes with the test however that ends, also when it is
// killed; but a socket's path has at most 107 bytes, and that folder's is longer. So it is named
// through a descriptor that this process holds, /proc/PID/fd/N: the same name for this process and
// for the programs that it starts, valid while this lives.
// Thread rule: const methods from any thread.
#pragma once

#include <string>
#include <vector>

#include "lib/os/file_descriptor.h"

namespace tokamak::testing_support {

class ShortFolder final {
 public:
  // Makes it, empty. Without $TEST_TMPDIR (a test that was started by hand) it lies in /tmp.
  ShortFolder();
  // Removes it with all that is in it.
  ~ShortFolder();
  ShortFolder(const ShortFolder&) = delete;
  ShortFolder& operator=(const ShortFolder&) = delete;

  const std::string& path() const { return path_; }
  // For who minds that path() is a link: its name in the file system, too long for sockets.
  const std::string& long_path() const { return where_; }
  std::string Path(const std::string& file) const { return path_ + "/" + file; }
  // The names of its files.
  std::vector<std::string> Files() const;

 private:
  std::string where_;  // its long name
  os::FileDescriptor folder_;
  std::string path_;
};

}  // namespace tokamak::testing_support
