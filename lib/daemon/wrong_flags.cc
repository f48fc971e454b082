#include "lib/daemon/wrong_flags.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/nearest_name.h"

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
