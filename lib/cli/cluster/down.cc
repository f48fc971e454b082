#include "lib/cli/cluster/down.h"

#include <iostream>

#include "lib/cli/cluster/cluster.h"
#include "lib/cli/common/output.h"

namespace tokamak::cli {

namespace {

int Down(const Flags& flags, const NoFlags& /*own*/) {
  const auto stopped = StopCluster(flags.state);
  if (!stopped.ok()) return Fail(flags, stopped.status(), 2);
  if (flags.json) {
    std::cout << ToText({{"stopped", *stopped}}) << "\n";
  } else {
    std::cout << "stopped " << *stopped << (*stopped == 1 ? " process\n" : " processes\n");
  }
  return 0;
}

}  // namespace

Command DownCommand() {
  return CommandAlone({"down", "stop the cluster that tok up started", "tok down"}, AddNoFlags, Down);
}

}  // namespace tokamak::cli
