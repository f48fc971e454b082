// Secret is a password from a file or the environment. It never appears elsewhere: not on a command
// line, in a log or in an error.
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

  // Returns the password; empty: none. A file's last line break is not part of it.
  // kFailedPrecondition: the text names the file.
  absl::StatusOr<std::string> Read() const;

  // Returns in one line why other users of this machine may read or change the file, or an empty
  // text if they may not.
  std::string Exposure() const;

 private:
  std::string text_;
  std::string path_;
};

}  // namespace tokamak::directory::redis
