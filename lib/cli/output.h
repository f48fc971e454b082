// Output for people and for programs: tables whose columns line up, and a progress bar where a terminal watches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/time.h"

namespace tokamak::cli {

// Rows of texts, columns lined up; the first row is the heading. Columns named in `right` are flushed right.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& right = {});

// A bar on standard error, when that is a terminal and the work has lasted for a second; silent otherwise. Dropping it wipes
// the bar. One thread.
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

// The line that Progress draws, without its control characters: "put  [#####.....]  52 %  1.2 GiB/s  3 s left".
std::string FormatProgress(const std::string& what, uint64_t done, uint64_t total, double seconds, size_t width);

}  // namespace tokamak::cli
