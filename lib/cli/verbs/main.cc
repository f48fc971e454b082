// `tok verbs` by itself, which builds sooner, for rdma_test (//lib/verbs/kernel:rdma_test.bzl).
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/cli/common/output.h"
#include "lib/cli/verbs/command.h"

int main(int argc, char** argv) {
  CLI::App app("tok verbs, without the other commands.", "tok");
  app.require_subcommand(1);
  tokamak::cli::verbs::CommandFlags flags;
  tokamak::cli::verbs::AddCommand(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::string message = absl::StrCat(error.what(), " (see tok verbs --help)");
    tokamak::cli::PrintError(false, absl::InvalidArgumentError(message));
    return 2;
  }
  return tokamak::cli::verbs::RunCommand(flags, false);
}
