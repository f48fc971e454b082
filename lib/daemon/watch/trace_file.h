// TraceFile records the phases of this process's gets and pulls and, when dropped, writes them for
// Perfetto (ui.perfetto.dev) or chrome://tracing.
//
// Bound: a life's first kMaxPhases phases, some 40 bytes each; later ones count in the totals, with
// a line in the log.
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
