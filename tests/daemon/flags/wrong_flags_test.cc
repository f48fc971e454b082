#include "lib/daemon/flags/wrong_flags.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::daemon {
namespace {

// Returns the error about a command line of `program`, which has a flag, and a command with a flag
// and an argument.
std::string Said(std::vector<std::string> arguments) {
  CLI::App app("about", "program");
  app.require_subcommand(1);
  int number = 0;
  std::string name;
  app.add_option("--number", number);
  CLI::App* const go = app.add_subcommand("fetch", "fetches");
  go->add_option("--timeout", number);
  go->add_option("name", name)->required();
  app.add_subcommand("list", "lists");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return ExplainWrongFlags(app, error);
  }
  return "";
}

TEST(WrongFlagsTest, AnUnknownWordIsNamedWithTheNearestOne) {
  EXPECT_EQ(Said({"fetch", "x", "--timeuot", "1"}),
            "there is no flag --timeuot; did you mean --timeout? (see program --help)");
  EXPECT_EQ(Said({"fetch", "x", "--numbre=1"}),
            "there is no flag --numbre; did you mean --number? (see program --help)");
  EXPECT_EQ(Said({"fetch", "x", "--colour"}), "there is no flag --colour (see program --help)");
  EXPECT_EQ(Said({"fecth", "x"}), "there is no command fecth; did you mean fetch? (see program --help)");
  EXPECT_EQ(Said({"sing"}), "there is no command sing (see program --help)");
}

TEST(WrongFlagsTest, AFlagOfACommandFollowsTheCommand) {
  const std::string said = "--timeout belongs to fetch: give it after the command (see program --help)";
  EXPECT_EQ(Said({"--timeout", "1", "fetch", "x"}), said);
  EXPECT_EQ(Said({"--timeout=1", "fetch", "x"}), said);
  EXPECT_EQ(Said({"list", "--timeout", "1"}), said);
}

TEST(WrongFlagsTest, AMissingCommandIsReportedWithAllCommands) {
  EXPECT_EQ(Said({}), "give a command: fetch, list (see program --help)");
}

TEST(WrongFlagsTest, OtherMistakesHaveTheParsersText) {
  EXPECT_EQ(Said({"fetch", "x", "y"}), "The following argument was not expected: y (see program --help)");
  EXPECT_EQ(Said({"fetch"}), "name is required (see program --help)");
}

}  // namespace
}  // namespace tokamak::daemon
