#include "lib/cli/objects/wait.h"

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/text/printable.h"
#include "lib/base/time.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "lib/cli/objects/files.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace {

struct WaitFlags {
  std::vector<std::string> names;
  uint32_t count = 0;  // that suffice; 0: all
  base::Duration timeout = base::Seconds(30);
  bool here = false;
};

void AddWait(CLI::App& wait, WaitFlags& flags) {
  wait.add_option("name", flags.names, "names or 40-digit ids")->required();
  wait.add_option("--count", flags.count, "this many of them are enough; all unless given");
  AddDuration(wait, "--timeout", flags.timeout, "how long; then it fails and says which are missing");
  wait.add_flag("--here", flags.here, "until they are on this node");
}

absl::Status Wait(const CommandContext& context, const WaitFlags& flags) {
  if (flags.names.size() > Client::kMaxWaited) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", Client::kMaxWaited, " objects are waited for at once"));
  }
  if (flags.count > flags.names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--count ", flags.count, ": only ", flags.names.size(), " are named"));
  }
  std::vector<ObjectId> ids;
  for (const std::string& name : flags.names) ids.push_back(IdOf(name));
  const size_t count = flags.count > 0 ? flags.count : ids.size();
  WaitOptions options;
  options.scope = flags.here ? Scope::kLocal : Scope::kAnywhere;
  const auto exist = AsAbsl(context.client.Wait(ids, count, AsTimeout(flags.timeout), options));
  if (!exist.ok()) return exist.status();
  std::vector<std::string> ready, missing;
  for (size_t i = 0; i < ids.size(); ++i) ((*exist)[i] ? ready : missing).push_back(flags.names[i]);
  if (context.flags.json) {
    std::cout << ToText({{"ready", ready}, {"missing", missing}}) << std::endl;
  } else {
    for (const std::string& name : ready) std::cout << base::Printable(name) << "\n";
    std::cout << std::flush;
  }
  if (ready.size() >= count) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("after ", base::FormatDuration(flags.timeout), " ", ready.size(),
                                                  " of ", count, " exist; missing: ", absl::StrJoin(missing, ", ")));
}

}  // namespace

Command WaitCommand() {
  return CommandWithDaemon(
      {"wait", "wait until objects exist on any node; moves nothing", "tok wait release --timeout 10s"}, AddWait, Wait);
}

}  // namespace tokamak::cli
