#include "lib/cli/doctor/child_prober.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/process/child_process.h"

namespace tokamak::cli::doctor {

namespace {

constexpr size_t kMaxOutput = 256 * 1024;  // bytes of a probe's words; it says a few kilobytes
constexpr size_t kWordsKept = 3;           // lines of a library, shown when a probe died

std::string ReadAll(int fd) {
  std::string text(kMaxOutput, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = pread(fd, text.data() + size, text.size() - size, static_cast<off_t>(size));
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

ProbeOutcome Fold(const std::string& text, std::vector<std::string>& others) {
  ProbeOutcome outcome;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (FoldLine(std::string(line), outcome)) continue;
    others.emplace_back(line);
    if (others.size() > kWordsKept) others.erase(others.begin());
  }
  return outcome;
}

// Ends a child that took too long. False when the kernel does not let go of it.
bool End(os::ChildProcess& child, base::Duration grace) {
  if (!child.Signal(SIGKILL).ok()) return true;  // it ended in this moment
  if (child.Wait(grace).ok()) return true;
  child.Detach();  // or this process would wait as well
  return false;
}

}  // namespace

ProbeOutcome ChildProber::Probe(const ProbeRequest& request) {
  ProbeOutcome nothing;
  nothing.steps = {"start"};
  const os::FileDescriptor words(memfd_create("tokamak-probe", MFD_CLOEXEC));
  if (!words.valid()) {
    nothing.failure = absl::ErrnoToStatus(errno, "cannot make a memory file");
    return nothing;
  }
  os::ChildOptions options;
  options.argv = options_.program;
  options.argv.insert(options.argv.end(), {"--device", request.device});
  if (!request.peer.empty()) {
    options.argv.insert(options.argv.end(), {"--peer", request.peer, "--port", absl::StrCat(request.peer_port)});
  }
  if (request.by_tcp) options.argv.insert(options.argv.end(), {"--cm", "tcp"});
  if (request.address != verbs::Address()) {
    options.argv.insert(options.argv.end(), {"--address", request.address.ToString()});
  }
  const std::string fabric = FlagsOf(request.fabric);
  for (const absl::string_view word : absl::StrSplit(fabric, ' ', absl::SkipEmpty())) options.argv.emplace_back(word);
  options.output = absl::StrCat("/proc/", getpid(), "/fd/", words.get());
  options.die_with_parent = true;
  auto child = os::ChildProcess::Start(options);
  if (!child.ok()) {
    nothing.failure = child.status();
    return nothing;
  }
  const auto ended = (*child)->Wait(options_.deadline);
  const bool stuck = !ended.ok() && !End(**child, options_.grace);
  std::vector<std::string> others;
  ProbeOutcome outcome = Fold(ReadAll(words.get()), others);
  if (outcome.steps.empty()) outcome.steps = {"start"};
  outcome.stuck = stuck;
  if (!ended.ok()) {
    outcome.hung = true;
    outcome.finished = false;
  } else if (!outcome.finished && outcome.failure.ok()) {
    outcome.failure = absl::InternalError(
        absl::StrCat("the process that tried it ended with ", ended->ToString(), ": ", absl::StrJoin(others, " ")));
  }
  return outcome;
}

}  // namespace tokamak::cli::doctor
