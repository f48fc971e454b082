// TraceFile records the phases of this process's gets and pulls and writes them, for Perfetto
// (ui.perfetto.dev) or chrome://tracing, when it is dropped.
//
// Bound: the first kMaxPhases phases of a life, some 40 bytes each; later ones count only in the
// totals, and a line of the log says so.
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/phase_log.h"

namespace tokamak::daemon {

class TraceFile final {
 public:
  static constexpr size_t kMaxPhases = 1 << 20;

  // kInvalidArgument: `path` cannot be written.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Create(const std::string& path);
  // Requires that recording has ended.
  ~TraceFile();

  base::PhaseLog& log() { return log_; }

 private:
  TraceFile(std::string path, std::ofstream file);

  const std::string path_;
  std::ofstream file_;
  base::PhaseLog log_;
};

}  // namespace tokamak::daemon
