#include "lib/cli/cluster/demo_command.h"

#include <iostream>

#include "lib/cli/cluster/demo.h"
#include "lib/cli/cluster/up.h"

namespace tokamak::cli {

namespace {

void AddDemo(CLI::App& demo, DemoSettings& own) {
  demo.add_option("--from", own.sources, "folders whose files are moved")->type_name("DIR")->capture_default_str();
  AddSize(demo, "--least", own.least_bytes, "move files of at least this size together, if there are enough")
      ->default_str("200MiB");
  AddSize(demo, "--memory", own.memory, "store of each node; files up to a third of it are moved")->default_str("1GiB");
  AddNodeDevices(demo, own.devices);
  demo.add_option("--tokd", own.tokd_flags, "a further flag for each tokd, as for up")->allow_extra_args(false);
}

int RunTheDemo(const Flags& flags, const DemoSettings& own) {
  DemoSettings settings = own;
  settings.folder = flags.state + "-demo";
  settings.json = flags.json;
  const auto result = RunDemo(settings);
  if (!result.ok()) return Fail(flags, result.status(), 1);
  std::cout << (flags.json ? DemoToJson(*result) + "\n" : FormatDemo(*result)) << std::flush;
  return result->mismatches == 0 ? 0 : 1;
}

}  // namespace

Command DemoCommand() {
  return CommandAlone({"demo", "move real files between three nodes by every protocol, and compare hashes",
                       "tok demo --from /usr/include --least 1MiB"},
                      AddDemo, RunTheDemo);
}

}  // namespace tokamak::cli
