#include "lib/cli/objects/put.h"

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/cli/objects/files.h"
#include "lib/cli/objects/for_each.h"
#include "lib/cli/objects/print_moved.h"

namespace tokamak::cli {

namespace {

struct PutFlags {
  std::vector<std::string> paths;
  std::string as;
};

void AddPut(CLI::App& put, PutFlags& own) {
  put.add_option("path", own.paths,
                 "files or folders, or - for standard input; one that fails or is interrupted leaves nothing")
      ->type_name("FILE")
      ->required();
  put.add_option("--as", own.as, "the object's name");
}

absl::Status PutOne(const CommandContext& context, const std::string& path, const std::string& as) {
  if (path.empty()) return absl::InvalidArgumentError("an empty path names no file: give a FILE or DIR to put");
  if (as.empty() && IsStream(path)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no name that an object could have: give one with --as"));
  }
  std::error_code error;
  std::filesystem::path plain = std::filesystem::absolute(path, error).lexically_normal();  // "." has a name as well
  if (error)
    return absl::NotFoundError(
        absl::StrCat(path, ": the folder we are in is gone (", error.message(), "): give the whole path"));
  if (!plain.has_filename()) plain = plain.parent_path();  // "dir/" is "dir"
  const std::string name = as.empty() ? plain.filename().string() : as;
  const auto moved = PutPath(context.client, context.undo, path, name);
  if (!moved.ok()) return moved.status();
  PrintMoved(context, std::cout, "put", name, *moved);
  return absl::OkStatus();
}

absl::Status Put(const CommandContext& context, const PutFlags& own) {
  if (!own.as.empty() && own.paths.size() > 1)
    return absl::InvalidArgumentError("--as names one object: put one path at a time");
  return ForEach(context, own.paths, "put", [&](const std::string& path) { return PutOne(context, path, own.as); });
}

}  // namespace

Command PutCommand() {
  return CommandWithDaemon(
      {"put", "put files or folders, each as an object named like it", "tok put /etc/os-release --as release"}, AddPut,
      Put);
}

}  // namespace tokamak::cli
