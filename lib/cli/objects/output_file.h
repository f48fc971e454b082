// OutputFile is the destination of one object's bytes.
//
// A regular file appears whole or not at all: the bytes go to a temporary file beside it, which
// then takes its name. A link is followed to its file. Anything else is written through and never
// replaced: a device, a pipe, the target of a link of /proc (/dev/fd/N), and standard output, which
// is "-" or /dev/stdout.
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
  // Opens it; waits for a reader if `path` is a pipe. `mode` is that of a new file. `undo` removes
  // the temporary file unless Publish is reached.
  static absl::StatusOr<OutputFile> Open(const std::string& path, mode_t mode, Undo& undo);

  OutputFile(OutputFile&&) = default;
  OutputFile& operator=(OutputFile&&) = default;

  // Writes all bytes, and closes the file.
  absl::Status Write(absl::Span<const uint8_t> bytes, Progress& progress);

  // Gives a regular file its name.
  absl::Status Publish() const;

 private:
  OutputFile(std::string path, std::string part, os::FileDescriptor file)
      : path_(std::move(path)), part_(std::move(part)), file_(std::move(file)) {}

  std::string path_;  // for errors, and the final path of a regular file
  std::string part_;  // a regular file's name until then; "": written through
  os::FileDescriptor file_;
};

// Returns true if this names the program's standard output.
bool IsStandardOutput(const std::string& path);

// Returns the error of a failed system call, from errno: "cannot VERB PATH: reason".
absl::Status FileError(const std::string& verb, const std::string& path);

}  // namespace tokamak::cli
