#include "lib/cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// The length of the UTF-8 character that `text` begins with; 0: it begins with none.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto continues = [&](size_t from, size_t to) {
    for (size_t i = from; i <= to; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return false;
    }
    return true;
  };
  const uint8_t first = byte(0);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1, 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return continues(1, 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool beyond = first == 0xf4 && byte(1) > 0x8f;
    return continues(1, 3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

// ASCII's, and those of Latin 1, which some terminals obey as well.
bool IsControl(absl::string_view character) {
  const uint8_t first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

// The text, with \xHH for each byte that is not UTF-8, and of control characters as well if asked
// for.
std::string Escape(absl::string_view text, bool controls) {
  std::string escaped;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const absl::string_view next = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0 || (controls && IsControl(next))) {
      for (const char c : next) absl::StrAppendFormat(&escaped, "\\x%02x", static_cast<uint8_t>(c));
    } else {
      absl::StrAppend(&escaped, next);
    }
    text.remove_prefix(next.size());
  }
  return escaped;
}

void MakeUtf8(nlohmann::json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (!IsUtf8(text)) text = Escape(text, /*controls=*/false);
  } else if (value.is_structured()) {
    for (nlohmann::json& part : value) MakeUtf8(part);
  }
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Printable(absl::string_view text) { return Escape(text, /*controls=*/true); }

std::string ToText(nlohmann::json value, int indent) {
  MakeUtf8(value);
  return value.dump(indent);
}

void PrintError(bool json, const absl::Status& status) {
  const std::string message(status.message());
  if (json) {
    std::cerr << ToText({{"error", absl::StatusCodeToString(status.code())}, {"message", message}}) << std::endl;
  } else {
    std::cerr << "tok: " << Printable(message) << std::endl;
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
    for (std::string& text : row) text = Printable(text);
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
