// Files as objects: a file is one object, named by its path; a folder is an object that lists its
// content.
//
// The id is IdOf(name); the store keeps the name if it can. Metadata is JSON: {"kind": "file",
// "mode": ...} or {"kind": "directory"}, with data {"files": ["a", "b/c", ...], "folders":
// ["empty", ...]}: files are objects NAME/PATH, folders the empty ones. Bytes go between file and
// shared memory without a copy between. After a failure or interruption an Undo removes objects and
// files made.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cli/common/undo.h"
#include "tokamak/client.h"
#include "tokamak/object_id.h"
#include "tokamak/timeout.h"
#include "tokamak/types.h"

namespace tokamak::cli {

struct Moved {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> skipped;  // no files, with the reason
  std::string path;                  // read or written; "-": standard output
};

// 40 hexadecimal digits are an id; anything else is a name.
ObjectId IdOf(const std::string& name_or_id);
bool IsId(const std::string& name_or_id);

// True for sources without a name or a known end: "-" (standard input), a pipe, a device.
bool IsStream(const std::string& path);

// Puts a file, a stream, or a folder with all files below it, its own object last: readers find the
// files. Follows links to files. A file changing meanwhile is an error. kAlreadyExists: the name is
// taken.
absl::StatusOr<Moved> PutPath(Client& client, Undo& undo, const std::string& path, const std::string& name);

struct GetSettings {
  std::string output;  // see OutputFile; a folder takes a file under its name; empty: the object's name, here
  Timeout timeout = std::chrono::seconds(30);  // of an object, without progress
  Protocol protocol = Protocol::kAuto;
};

// Gets a file or a folder, whose files get their names once all are here. Refuses names leading out
// of the output's folder.
absl::StatusOr<Moved> GetPath(Client& client, Undo& undo, const std::string& name, const GetSettings& settings);

// Returns the names of a folder object's files, NAME/PATH; empty: no folder. Does not pull one too
// large for a listing. kNotFound.
absl::StatusOr<std::vector<std::string>> NamesBelow(Client& client, const std::string& name);

// Deletes an object cluster-wide, with a folder's files. Returns their number.
absl::StatusOr<uint64_t> RemovePath(Client& client, const std::string& name);

// Deletes, cluster-wide, this node's objects with `prefix`. Returns their number.
absl::StatusOr<uint64_t> RemovePrefix(Client& client, const std::string& prefix);

}  // namespace tokamak::cli
