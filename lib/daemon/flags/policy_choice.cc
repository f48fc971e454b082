#include "lib/daemon/flags/policy_choice.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/daemon/flags/policy_file.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::daemon {
namespace {

absl::Status CannotRead(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", why));
}

// Reads at most one byte beyond the limit.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const os::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return CannotRead(path, std::strerror(errno));
  struct stat about {};
  if (fstat(file.get(), &about) != 0) return CannotRead(path, std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return CannotRead(path, "it is no regular file");
  std::string text(kMaxPolicyFile + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), &text[size], text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path, std::strerror(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

// Escaped to one line for the log.
std::string OriginOf(const std::string& path, const PolicyFile& file) {
  if (!file.measured.has_value()) return path;
  const PolicyMeasurement& measured = *file.measured;
  return absl::CHexEscape(absl::StrCat(path, ", measured ", measured.date, " from ", measured.puller.node, " (",
                                       measured.puller.device, ") to ", measured.holder.node, " (",
                                       measured.holder.device, ")"));
}

absl::StatusOr<PolicyChoice> ParseTable(const std::string& text) {
  PolicyChoice choice;
  if (!absl::EndsWith(text, ".json")) {
    auto table = transport::Policy::Parse(text);
    if (!table.ok()) return table.status();
    choice.table = *std::move(table);
    choice.origin = "as given";
    return choice;
  }
  const auto contents = ReadFile(text);
  if (!contents.ok()) return contents.status();
  auto file = ParsePolicyFile(*contents);
  if (!file.ok()) return absl::InvalidArgumentError(absl::StrCat(text, ": ", file.status().message()));
  choice.origin = OriginOf(text, *file);
  choice.table = std::move(file->policy);
  return choice;
}

}  // namespace

absl::StatusOr<PolicyChoice> ParsePolicyChoice(const std::string& text) {
  PolicyChoice choice;
  absl::string_view rest = text;
  const bool adaptive = text == "adaptive" || absl::ConsumePrefix(&rest, "adaptive:");
  if (text != "adaptive") {
    auto table = ParseTable(std::string(rest));
    if (!table.ok()) return table.status();
    choice = *std::move(table);
  }
  choice.adaptive = adaptive;
  return choice;
}

}  // namespace tokamak::daemon
