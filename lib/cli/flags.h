// The flags of all commands, as the command line gave them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/cli/bench.h"
#include "lib/cli/cluster.h"
#include "lib/cli/copies.h"
#include "lib/cli/demo.h"
#include "lib/cli/doctor/command.h"
#include "lib/cli/events.h"
#include "lib/cli/list.h"
#include "lib/cli/top.h"
#include "lib/cli/tune/command.h"
#include "lib/cli/verbs/command.h"
#include "lib/cli/wait.h"

namespace tokamak::cli {

struct Flags {
  // Of every command.
  std::string socket;
  bool cluster_chosen = false;  // by --node or --state
  std::string state = DefaultFolder();
  uint32_t node = 1;
  bool json = false;

  // Of more than one.
  std::string name;
  std::vector<std::string> names;

  ClusterSettings cluster;
  DemoSettings demo;
  std::vector<std::string> paths;
  std::string as;
  std::string output;
  base::Duration timeout = base::Seconds(30);
  std::string protocol = "auto";
  std::string prefix;
  std::string help_for;
  CopiesFlags copies;
  ListFlags list;
  WaitFlags wait;
  EventsFlags events;
  TopFlags top;
  BenchFlags bench;
  doctor::CommandFlags doctor;
  tune::CommandFlags tune;
  verbs::CommandFlags verbs;
};

}  // namespace tokamak::cli
