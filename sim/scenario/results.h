// Results writes down a run: CSV files, of which the same scenario always gives the same bytes, and
// a summary.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "sim/scenario/run.h"

namespace tokamak::sim {

// Rows: transfers, ports and priorities, samples of queues, samples of workloads.
std::string TransfersCsv(const Run& run);
std::string PortsCsv(const Run& run);
std::string QueuesCsv(const Run& run);
std::string RatesCsv(const Run& run);

// Checks conservation, and real payload: "unaccounted" lists errors.
nlohmann::json Summary(const Run& run);

// Writes transfers.csv, ports.csv, queues.csv, rates.csv and summary.json; `folder` exists.
absl::Status WriteResults(const Run& run, const nlohmann::json& summary, const std::string& folder);

}  // namespace tokamak::sim
