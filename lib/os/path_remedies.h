// What to do when a path of a Unix socket cannot be used: the end of an error's line.
//
// Said by programs at both ends of it, a daemon that listens and a client that connects. Paths are looked at by their mode alone: where
// that does not explain the error (an access list, a read-only file system), nothing is said.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace tokamak::os {

// Who uses a path.
struct PathUser {
  uid_t user = 0;
  std::vector<gid_t> groups;
  std::string name;

  static PathUser OfThisProcess();
};

// Looks at a path as stat() does; false where there is none.
using LookAtPath = std::function<bool(const std::string& path, struct stat* file)>;
bool LookAtRealPath(const std::string& path, struct stat* file);

// After `error` (an errno) of connecting to `path`; empty, or begins with ": ".
std::string ConnectRemedy(const std::string& path, int error, const PathUser& who = PathUser::OfThisProcess(),
                          const LookAtPath& look = LookAtRealPath);

// After `error` of making a socket at `path`; empty, or begins with ": ".
std::string ListenRemedy(const std::string& path, int error, const PathUser& who = PathUser::OfThisProcess(),
                         const LookAtPath& look = LookAtRealPath);

}  // namespace tokamak::os
