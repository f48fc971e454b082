#include "lib/daemon/flags/wrong_flags.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/text/nearest_name.h"

namespace tokamak::daemon {

namespace {

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

void AddFlagsOf(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* const option : app.get_options({})) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
}

std::vector<std::string> CommandsWith(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands({})) {
    std::vector<std::string> flags;
    AddFlagsOf(*command, flags);
    if (std::find(flags.begin(), flags.end(), flag) != flags.end()) names.push_back(command->get_name());
  }
  return names;
}

std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> left = app.remaining(/*recurse=*/true);
  const std::vector<std::string> commands = CommandsOf(app);
  const bool lacks_command = !commands.empty() && app.get_subcommands().empty();
  if (lacks_command && left.empty()) return absl::StrCat("give a command: ", absl::StrJoin(commands, ", "));
  if (left.empty()) return error.what();
  const std::string& wrong = left.front();
  if (absl::StartsWith(wrong, "--")) {
    std::vector<std::string> flags;
    AddFlagsOf(app, flags);
    for (const CLI::App* const command : app.get_subcommands()) AddFlagsOf(*command, flags);
    const std::string written = wrong.substr(2, wrong.find('=') - 2);
    if (const std::vector<std::string> commands_with = CommandsWith(app, written); !commands_with.empty()) {
      return absl::StrCat("--", written, " belongs to ", absl::StrJoin(commands_with, ", "),
                          ": give it after the command");
    }
    return absl::StrCat("there is no flag --", written, base::DidYouMean(written, flags, "--"));
  }
  if (lacks_command) return absl::StrCat("there is no command ", wrong, base::DidYouMean(wrong, commands));
  return error.what();
}

}  // namespace

std::string ExplainWrongFlags(const CLI::App& app, const CLI::ParseError& error) {
  return absl::StrCat(Explain(app, error), " (see ", app.get_name(), " --help)");
}

}  // namespace tokamak::daemon
