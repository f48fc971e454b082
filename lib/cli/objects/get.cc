#include "lib/cli/objects/get.h"

#include <iostream>
#include <string>

#include "lib/base/text/printable.h"
#include "lib/base/time.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/objects/files.h"
#include "lib/cli/objects/output_file.h"
#include "lib/cli/objects/print_moved.h"
#include "tokamak/types.h"

namespace tokamak::cli {

namespace {

struct GetFlags {
  std::string name;
  std::string output;
  base::Duration timeout = base::Seconds(30);
  std::string protocol = "auto";
};

void AddGet(CLI::App& get, GetFlags& own) {
  get.add_option("name", own.name, "name or 40-digit id")->required();
  get.add_option("-o,--output", own.output,
                 "where to: a file, a folder, or - for standard output; the object's own name here unless given")
      ->type_name("FILE");
  AddDuration(get, "--timeout", own.timeout, "how long to wait while nothing of it comes");
  get.add_option("--protocol", own.protocol, "what moves it")
      ->check(CLI::IsMember({"auto", "eager", "read", "write"}))
      ->capture_default_str();
}

Protocol ParseProtocol(const std::string& name) {
  if (name == "eager") return Protocol::kEager;
  if (name == "read") return Protocol::kRead;
  if (name == "write") return Protocol::kWrite;
  return Protocol::kAuto;
}

absl::Status Get(const CommandContext& context, const GetFlags& own) {
  const bool to_standard_output = IsStandardOutput(own.output);
  const auto moved = GetPath(context.client, context.undo, own.name,
                             {own.output, AsTimeout(own.timeout), ParseProtocol(own.protocol)});
  if (!moved.ok()) return moved.status();
  PrintMoved(context, to_standard_output ? std::cerr : std::cout, "got", own.name, *moved);
  if (!context.flags.json && !to_standard_output) {
    std::cout << "written to " << base::Printable(moved->path) << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

Command GetCommand() {
  return CommandWithDaemon({"get", "get an object, from whichever node has it, and write it to a file or folder",
                            "tok --node 2 get release -o release.txt"},
                           AddGet, Get);
}

}  // namespace tokamak::cli
