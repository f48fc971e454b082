// Remedies for a path of a Unix socket that cannot be used: the end of an error's line.
//
// For both listeners and clients. Only modes are considered: an error that they do not explain (an
// access list, a read-only file system) has no remedy.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace tokamak::os {

struct PathUser {
  uid_t user = 0;
  std::vector<gid_t> groups;
  std::string name;

  static PathUser OfThisProcess();
};

// Looks at a path as stat() does; false if it does not exist.
using LookAtPath = std::function<bool(const std::string& path, struct stat* file)>;
bool LookAtRealPath(const std::string& path, struct stat* file);

// Return the remedy after connecting to `path`, or making a socket there, failed with the errno
// `error`; it is empty, or begins with ": ".
std::string ConnectRemedy(const std::string& path, int error, const PathUser& who = PathUser::OfThisProcess(),
                          const LookAtPath& look = LookAtRealPath);

std::string ListenRemedy(const std::string& path, int error, const PathUser& who = PathUser::OfThisProcess(),
                         const LookAtPath& look = LookAtRealPath);

}  // namespace tokamak::os
