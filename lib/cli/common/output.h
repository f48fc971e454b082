// Output for people and for programs: text that cannot upset a terminal, valid JSON, errors in one
// line, tables whose columns line up, and a progress bar where a terminal watches.
//
// Names may have any bytes. People see a control character, or a byte that is not UTF-8, as \xHH;
// JSON has the same where a byte is not UTF-8, as its strings cannot hold one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

// The value as text. `indent` as for json::dump.
std::string ToText(nlohmann::json value, int indent = -1);

// One line on standard error: "tok: MESSAGE", or {"error": "NOT_FOUND", "message": MESSAGE}.
void PrintError(bool json, const absl::Status& status);

// Flushes standard output: the exit code of a program whose result would be `code`, which is 1
// where something could not be written. Then that is said.
int FinishOutput(bool json, int code);

// Rows of texts, made printable, columns lined up; the first row is the heading. Columns named in
// `right` are flushed right.
std::string FormatTable(std::vector<std::vector<std::string>> rows, const std::vector<size_t>& right = {});

// A bar on standard error, when that is a terminal and the work has lasted for a second; silent
// otherwise. Dropping it wipes the bar. One thread.
class Progress final {
 public:
  // `what` stands before the bar; `total` in bytes.
  Progress(std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Advance(uint64_t bytes);

 private:
  const std::string what_;
  const uint64_t total_;
  const bool terminal_;
  const uint64_t began_;  // nanoseconds
  uint64_t drawn_ = 0;
  uint64_t done_ = 0;
};

// The line that Progress draws, without its control characters: "put  [#####.....]  52 %  1.2 GiB/s
// 3 s left".
std::string FormatProgress(const std::string& what, uint64_t done, uint64_t total, double seconds, size_t width);

}  // namespace tokamak::cli
