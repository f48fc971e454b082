// A store at its limit, for as long as one likes. Run by ci/full_store.
#include <chrono>
#include <cstdint>
#include <iostream>

#include "absl/strings/numbers.h"
#include "tests/daemon/full_store/full_store.h"

int main(int argc, char** argv) {
  tokamak::daemon::FullStoreOptions options;
  int64_t seconds = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[1], &seconds) || !absl::SimpleAtoi(argv[2], &options.seed) ||
      !absl::SimpleAtoi(argv[3], &options.programs) || seconds < 1 || options.programs < 1) {
    std::cerr << "usage: full_store SECONDS SEED PROGRAMS\n";
    return 2;
  }
  options.duration = std::chrono::seconds(seconds);
  const tokamak::daemon::FullStoreReport report = tokamak::daemon::FullStore(options).Run(std::cout);
  std::cout << report.Summary() << std::endl;
  return report.wrong.empty() ? 0 : 1;
}
