// Remedies for a path of a Unix socket that cannot be used: the end of an error's line.
//
// For listeners and clients, by modes alone: not for an access list, or a read-only file system.
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

// As stat(); false if it does not exist.
using LookAtPath = std::function<bool(const std::string& path, struct stat* file)>;
bool LookAtRealPath(const std::string& path, struct stat* file);

// Returns it after the errno `error`; empty, or begins with ": ".
std::string ConnectRemedy(const std::string& path, int error, const PathUser& who = PathUser::OfThisProcess(),
                          const LookAtPath& look = LookAtRealPath);

std::string ListenRemedy(const std::string& path, int error, const PathUser& who = PathUser::OfThisProcess(),
                         const LookAtPath& look = LookAtRealPath);

}  // namespace tokamak::os
