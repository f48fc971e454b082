// Output for people and programs: text harmless to a terminal, valid JSON, errors in one line,
// aligned tables, and a progress bar.
//
// Names may have any bytes: text shows control characters, and text and JSON bytes that are not
// UTF-8, as \xHH.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

// `indent` as for json::dump.
std::string ToText(nlohmann::json value, int indent = -1);

// Prints one line on standard error: "tok: MESSAGE", or {"error": "NOT_FOUND", "message": MESSAGE}.
void PrintError(bool json, const absl::Status& status);

// Flushes standard output. Returns `code`, or 1 with an error message if output was lost.
int FinishOutput(bool json, int code);

// Aligns printable texts; the first row is the heading. `right`: columns flushed right.
std::string FormatTable(std::vector<std::vector<std::string>> rows, const std::vector<size_t>& right = {});

// A bar on standard error, if a terminal, after a second of work; wiped at the end. Thread rule:
// one thread.
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

// "put  [#####.....]  52 %  1.2 GiB/s  3 s left".
std::string FormatProgress(const std::string& what, uint64_t done, uint64_t total, double seconds, size_t width);

}  // namespace tokamak::cli
