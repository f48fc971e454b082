#include "tests/faults/command.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/process/child_process.h"

namespace tokamak::faults {

namespace {

constexpr base::Duration kLimit = base::Seconds(60);

}  // namespace

absl::StatusOr<std::string> Output(const std::vector<std::string>& argv) {
  const os::FileDescriptor output(memfd_create("output", MFD_CLOEXEC));
  if (!output.valid()) return absl::UnavailableError("no memory for a program's output");
  os::ChildOptions options;
  options.argv = argv;
  options.output = absl::StrCat("/proc/", getpid(), "/fd/", output.get());
  options.die_with_parent = true;
  const std::string text = absl::StrJoin(argv, " ");
  const auto child = os::ChildProcess::Start(options);
  if (!child.ok()) return absl::UnavailableError(absl::StrCat(text, ": ", child.status().message()));
  const auto ended = (*child)->Wait(kLimit);
  std::ifstream file(options.output);
  const std::string printed = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!ended.ok()) return absl::UnavailableError(absl::StrCat(text, " does not end: ", printed));
  if (!ended->ok()) return absl::UnavailableError(absl::StrCat(text, ": ", ended->ToString(), ": ", printed));
  return printed;
}

absl::Status Run(const std::vector<std::string>& argv) { return Output(argv).status(); }

}  // namespace tokamak::faults
