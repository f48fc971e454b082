// Secret is a password that stands in a file, or in the environment, and is written nowhere else:
// not on a command line, in no log, and in no error.
//
// A file is read again for each connection, so a password can be changed while programs run.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tokamak::directory::redis {

class Secret final {
 public:
  static constexpr size_t kMax = 4096;  // bytes

  Secret() = default;  // none
  static Secret FromText(std::string text);
  static Secret FromFile(std::string path);

  bool is_given() const { return !text_.empty() || !path_.empty(); }

  // Empty: none. A file's last line break is no part of it. An error (kFailedPrecondition) names the
  // file.
  absl::StatusOr<std::string> Read() const;

  // What is wrong with the file, in one line: others of this machine may read or change it. Empty:
  // nothing.
  std::string Exposure() const;

 private:
  std::string text_;
  std::string path_;
};

}  // namespace tokamak::directory::redis
