// Results writes down what happened in a run: CSV files, of which the same scenario always gives
// the same bytes, and a summary.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "sim/scenario/run.h"

namespace tokamak::sim {

// One row for each transfer, port and priority, sample of a queue, and sample of a workload.
std::string TransfersCsv(const Run& run);
std::string PortsCsv(const Run& run);
std::string QueuesCsv(const Run& run);
std::string RatesCsv(const Run& run);

// What a reader wants to know first. Checks that nothing has disappeared, and that real payload
// arrived as it was sent: "unaccounted" lists what is wrong.
nlohmann::json Summary(const Run& run);

// transfers.csv, ports.csv, queues.csv, rates.csv and summary.json, in a folder that exists.
absl::Status WriteResults(const Run& run, const nlohmann::json& summary, const std::string& folder);

}  // namespace tokamak::sim
