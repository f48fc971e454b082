// SystemFiles reads what the kernel tells in files (/proc, /sys, /dev), below a root of the
// caller's choice, so that a test can lay out a machine as a folder.
//
// Law: a file that is absent or unreadable is not an error but an unknown fact: kernels, containers
// and permissions differ. kMaxText and kMaxEntries bound the reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tokamak::cli::doctor {

class SystemFiles final {
 public:
  static constexpr size_t kMaxText = 64 * 1024;  // bytes of one file; the rest is not looked at
  static constexpr size_t kMaxEntries = 1024;    // of one folder

  // `root` stands before every path; empty is the machine itself.
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}

  // The text without white space around it.
  std::optional<std::string> Read(const std::string& path) const;
  std::optional<uint64_t> ReadNumber(const std::string& path) const;

  // The names in a folder, sorted so that a9 stands before a10.
  std::vector<std::string> List(const std::string& path) const;

  bool Exists(const std::string& path) const;

  // Whether the rights on the file let this process read and write it. (A control group may refuse
  // a device all the same.)
  bool MayReadAndWrite(const std::string& path) const;

  // The last part of what a symbolic link points at; empty where it is none.
  std::string LinkName(const std::string& path) const;

 private:
  const std::string root_;
};

}  // namespace tokamak::cli::doctor
