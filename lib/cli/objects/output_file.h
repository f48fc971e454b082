// OutputFile is the destination of one object's bytes.
//
// A regular file appears whole or not at all: a temporary file beside it takes its name at the end.
// Links are followed. All else is written through, never replaced: a device, a pipe, a link of
// /proc (/dev/fd/N), and standard output, "-" or /dev/stdout.
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
  // Waits for the reader of a pipe. `mode`: a new file's. `undo` removes the temporary file unless
  // Publish is reached.
  static absl::StatusOr<OutputFile> Open(const std::string& path, mode_t mode, Undo& undo);

  OutputFile(OutputFile&&) = default;
  OutputFile& operator=(OutputFile&&) = default;

  absl::Status Write(absl::Span<const uint8_t> bytes, Progress& progress);

  absl::Status Publish() const;

 private:
  OutputFile(std::string path, std::string part, os::FileDescriptor file)
      : path_(std::move(path)), part_(std::move(part)), file_(std::move(file)) {}

  std::string path_;  // for errors; a regular file's final one
  std::string part_;  // a regular file's until then; "": written through
  os::FileDescriptor file_;
};

bool IsStandardOutput(const std::string& path);

// Returns errno's error: "cannot VERB PATH: reason".
absl::Status FileError(const std::string& verb, const std::string& path);

}  // namespace tokamak::cli
