// Secret is a password from a file or the environment. It never appears elsewhere: not on a command
// line, in a log or in an error.
//
// A file is read for each connection, so the password may change meanwhile.
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

  // Without a file's last line break; empty: none. kFailedPrecondition: the text names the file.
  absl::StatusOr<std::string> Read() const;

  // Returns in one line why other users may read or change the file; empty: they may not.
  std::string Exposure() const;

 private:
  std::string text_;
  std::string path_;
};

}  // namespace tokamak::directory::redis
