#include "lib/cli/common/command.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/units.h"
#include "lib/cli/common/output.h"

namespace tokamak::cli {

namespace {

// 30s, not 30.00 s.
std::string Short(base::Duration duration) {
  const int64_t milliseconds = duration.milliseconds();
  return milliseconds % 1000 == 0 ? absl::StrCat(milliseconds / 1000, "s") : absl::StrCat(milliseconds, "ms");
}

}  // namespace

int Fail(const Flags& flags, const absl::Status& status, int code) {
  PrintError(flags.json, status);
  return code;
}

int ExitCode(const Flags& flags, const absl::Status& status) {
  if (status.ok()) return 0;
  return absl::IsCancelled(status) ? 1 : Fail(flags, status, 1);
}

CLI::App* NewCommand(CLI::App& app, const std::string& name, const std::string& about, const std::string& example) {
  CLI::App* const command = app.add_subcommand(name, about);
  command->footer(
      absl::StrCat("Example:\n  ", example, "\nFlags of every command, such as --node and --json: tok --help."));
  return command;
}

CLI::Option* AddDuration(CLI::App& command, const std::string& names, base::Duration& value, const std::string& about) {
  const auto read = [&value, names](const std::string& text) {
    const auto parsed = base::ParseDuration(text);
    if (!parsed.ok()) throw CLI::ValidationError(names, std::string(parsed.status().message()));
    value = *parsed;
  };
  return command.add_option_function<std::string>(names, read, about)->type_name("TIME")->default_str(Short(value));
}

CLI::Validator AtLeastOne() {
  const auto check = [](const std::string& text) {
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    const bool is_zero = is_number && text.find_first_not_of('0') == std::string::npos;
    return is_number && !is_zero ? std::string() : absl::StrCat("'", text, "' is no number from 1 on");
  };
  return CLI::Validator(check, "", "at least one");
}

CLI::Validator NumberOfNode() {
  const auto read = [](std::string& text) {
    absl::string_view number = text;
    (void)absl::ConsumePrefix(&number, "node");
    uint32_t node = 0;
    if (!absl::SimpleAtoi(number, &node)) {
      return absl::StrCat("'", text,
                          "' is no node of a cluster that tok up starts: they are 1, 2..., or node1, node2...");
    }
    text = std::string(number);
    return std::string();
  };
  return CLI::Validator(read, "", "number of a node");
}

CLI::Option* AddSize(CLI::App& command, const std::string& names, uint64_t& value, const std::string& about) {
  const auto read = [&value, names](const std::string& text) {
    const auto parsed = base::ParseSize(text);
    if (!parsed.ok()) throw CLI::ValidationError(names, std::string(parsed.status().message()));
    value = *parsed;
  };
  return command.add_option_function<std::string>(names, read, about)->type_name("SIZE");
}

}  // namespace tokamak::cli
