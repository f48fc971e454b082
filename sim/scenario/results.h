// Results writes down a run: CSV files, of which the same scenario always gives the same bytes, and
// a summary.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "sim/scenario/run.h"

namespace tokamak::sim {

// Each has one row for each transfer, port and priority, sample of a queue, or sample of a
// workload.
std::string TransfersCsv(const Run& run);
std::string PortsCsv(const Run& run);
std::string QueuesCsv(const Run& run);
std::string RatesCsv(const Run& run);

// Returns what a reader wants to know first. Checks that nothing has disappeared, and that real
// payload arrived as sent: "unaccounted" lists the errors.
nlohmann::json Summary(const Run& run);

// Writes transfers.csv, ports.csv, queues.csv, rates.csv and summary.json into a folder that
// exists.
absl::Status WriteResults(const Run& run, const nlohmann::json& summary, const std::string& folder);

}  // namespace tokamak::sim
