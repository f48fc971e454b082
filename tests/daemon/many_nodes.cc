// Run by ci/many_nodes.
#include <iostream>

#include "absl/strings/numbers.h"
#include "tests/daemon/crowd.h"

int main(int argc, char** argv) {
  int nodes = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &nodes) || nodes < 2) {
    std::cerr << "usage: many_nodes NODES SECONDS\n";
    return 2;
  }
  int64_t seconds = 0;
  if (!absl::SimpleAtoi(argv[2], &seconds) || seconds < 1) return 2;
  std::cout << "starting " << nodes << " tokd\n" << std::flush;
  tokamak::daemon::Crowd crowd(nodes);
  const tokamak::daemon::CrowdReport report = crowd.GetAll(std::chrono::seconds(seconds));
  std::cout << report.gets << " gets in " << report.seconds << " s, " << report.failed_gets << " failed"
            << (report.first_failure.empty() ? "" : ": " + report.first_failure) << "\n"
            << report.connections << " connections, " << report.connections_lost << " lost, " << report.refusals
            << " refused, " << report.protocol_errors << " protocol errors, " << report.failed_attempts
            << " attempts to pull repeated\n"
            << "a node has at most " << report.most_descriptors_more << " more descriptors, and "
            << report.most_memory_more << " KiB more memory of its own\n";
  const bool well = report.failed_gets == 0 && report.refusals == 0 && report.protocol_errors == 0 &&
                    report.most_descriptors_more <= 0;
  return well ? 0 : 1;
}
