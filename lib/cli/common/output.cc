#include "lib/cli/common/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/text/printable.h"
#include "lib/base/units.h"

namespace tokamak::cli {

namespace {

constexpr double kSilentSeconds = 1.0;
constexpr uint64_t kRedrawNanoseconds = 100'000'000;
constexpr size_t kBarWidth = 30;

uint64_t NowNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void MakeUtf8(nlohmann::json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (!base::IsUtf8(text)) text = base::ToUtf8(text);
  } else if (value.is_structured()) {
    for (nlohmann::json& part : value) MakeUtf8(part);
  }
}

}  // namespace

std::string ToText(nlohmann::json value, int indent) {
  MakeUtf8(value);
  return value.dump(indent);
}

void PrintError(bool json, const absl::Status& status) {
  const std::string message(status.message());
  if (json) {
    std::cerr << ToText({{"error", absl::StatusCodeToString(status.code())}, {"message", message}}) << std::endl;
  } else {
    std::cerr << "tok: " << base::Printable(message) << std::endl;
  }
}

int FinishOutput(bool json, int code) {
  errno = 0;
  std::cout.flush();
  if (std::cout.good()) return code;
  const std::string reason = errno == 0 ? "" : absl::StrCat(": ", std::strerror(errno));
  PrintError(json, absl::DataLossError(absl::StrCat("cannot write to standard output", reason)));
  return code == 0 ? 1 : code;
}

std::string FormatTable(std::vector<std::vector<std::string>> rows, const std::vector<size_t>& right) {
  std::vector<size_t> widths;
  for (auto& row : rows) {
    for (std::string& text : row) text = base::Printable(text);
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      const bool flush_right = std::find(right.begin(), right.end(), i) != right.end();
      absl::StrAppend(&line, i == 0 ? "" : "  ", flush_right ? gap : "", row[i], flush_right ? "" : gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&table, line, "\n");
  }
  return table;
}

std::string FormatProgress(const std::string& what, uint64_t done, uint64_t total, double seconds, size_t width) {
  const double part = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<size_t>(part * static_cast<double>(width));
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const double left = rate > 0 ? static_cast<double>(total - std::min(done, total)) / rate : 0;
  return absl::StrFormat("%s  [%s%s]  %3.0f %%  %s/s  %.0f s left", what, std::string(filled, '#'),
                         std::string(width - filled, '.'), part * 100, base::FormatSize(static_cast<uint64_t>(rate)),
                         left);
}

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)), total_(total), terminal_(isatty(STDERR_FILENO) == 1), began_(NowNanoseconds()) {}

Progress::~Progress() {
  if (drawn_ != 0) std::cerr << "\r\033[K" << std::flush;
}

void Progress::Advance(uint64_t bytes) {
  done_ += bytes;
  if (!terminal_) return;
  const uint64_t now = NowNanoseconds();
  const double seconds = static_cast<double>(now - began_) * 1e-9;
  if (seconds < kSilentSeconds || now - drawn_ < kRedrawNanoseconds) return;
  drawn_ = now;
  std::cerr << "\r\033[K" << FormatProgress(what_, done_, total_, seconds, kBarWidth) << std::flush;
}

}  // namespace tokamak::cli
