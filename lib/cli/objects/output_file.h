// OutputFile is what one object's bytes are written to.
//
// A regular file appears whole or not at all: the bytes go to a file beside it, which then takes
// its name. A link is followed to the file that it names. What is neither is written through and
// never replaced: a device, a pipe, what a link of /proc leads to (/dev/fd/N), and standard output,
// which is "-" or /dev/stdout.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/cli/common/output.h"
#include "lib/cli/common/undo.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::cli {

class OutputFile final {
 public:
  // Opens it, which waits for a reader where `path` is a pipe. `mode` is that of a new file. What
  // has to be removed unless Publish is reached is noted in `undo`.
  static absl::StatusOr<OutputFile> Open(const std::string& path, mode_t mode, Undo& undo);

  OutputFile(OutputFile&&) = default;
  OutputFile& operator=(OutputFile&&) = default;

  // Writes all there is to write, and closes the file.
  absl::Status Write(absl::Span<const uint8_t> bytes, Progress& progress);

  // Gives a regular file its name.
  absl::Status Publish() const;

 private:
  OutputFile(std::string path, std::string part, os::FileDescriptor file)
      : path_(std::move(path)), part_(std::move(part)), file_(std::move(file)) {}

  std::string path_;  // for errors, and of a regular file where it goes
  std::string part_;  // a regular file's name until then; "" for what is written through
  os::FileDescriptor file_;
};

// Whether this names the standard output of this program.
bool IsStandardOutput(const std::string& path);

// The error of a system call that failed, from errno: "cannot VERB PATH: reason".
absl::Status FileError(const std::string& verb, const std::string& path);

}  // namespace tokamak::cli
