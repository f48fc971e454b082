#include "lib/verbs/kernel/program/program_faults.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/units.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr std::pair<const char*, CompletionStatus> kStatuses[] = {
    {"retry-exceeded", CompletionStatus::kRetryExceeded},
    {"rnr-retry-exceeded", CompletionStatus::kRnrRetryExceeded},
    {"remote-access", CompletionStatus::kRemoteAccess},
    {"remote-operation", CompletionStatus::kRemoteOperation},
    {"remote-invalid-request", CompletionStatus::kRemoteInvalidRequest},
    {"bad-response", CompletionStatus::kBadResponse},
    {"local-protection", CompletionStatus::kLocalProtection},
    {"local-length", CompletionStatus::kLocalLength},
    {"local-operation", CompletionStatus::kLocalQpOperation},
    {"fatal", CompletionStatus::kFatal},
    {"flushed", CompletionStatus::kFlushed},
};

std::pair<absl::string_view, absl::string_view> InTwo(absl::string_view text) {
  return absl::StrSplit(text, absl::MaxSplits(':', 1));
}

absl::Status ParsePositive(absl::string_view text, base::Duration* value) {
  const absl::StatusOr<base::Duration> parsed = base::ParseDuration(text);
  if (!parsed.ok()) return parsed.status();
  if (*parsed <= base::Duration())
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no time above zero"));
  *value = *parsed;
  return absl::OkStatus();
}

std::string TimeText(base::Duration time) { return absl::StrCat(time.nanoseconds(), "ns"); }

}  // namespace

absl::StatusOr<RequestFault> RequestFault::Parse(absl::string_view text) {
  const auto [number, status] = InTwo(text);
  RequestFault fault;
  if (!absl::SimpleAtoi(number, &fault.number) || fault.number == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", number, "' is no number of a request: 1 is the first; 3, or 3:remote-access"));
  }
  if (status.empty()) return fault;
  std::string known;
  for (const auto& [name, value] : kStatuses) {
    fault.status = value;
    if (status == name) return fault;
    absl::StrAppend(&known, known.empty() ? "" : ", ", name);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", status, "' is no status: ", known));
}

std::string RequestFault::ToString() const {
  std::string text = absl::StrCat(number);
  for (const auto& [name, value] : kStatuses) {
    if (status == value) absl::StrAppend(&text, ":", name);
  }
  return text;
}

absl::StatusOr<PortFault> PortFault::Parse(absl::string_view text) {
  const auto [after, lasts] = InTwo(text);
  PortFault fault;
  if (absl::Status parsed = ParsePositive(after, &fault.after); !parsed.ok()) return parsed;
  if (lasts.empty()) return fault;
  if (absl::Status parsed = ParsePositive(lasts, &fault.lasts); !parsed.ok()) return parsed;
  return fault;
}

std::string PortFault::ToString() const {
  return lasts > base::Duration() ? absl::StrCat(TimeText(after), ":", TimeText(lasts)) : TimeText(after);
}

}  // namespace tokamak::verbs::kernel
