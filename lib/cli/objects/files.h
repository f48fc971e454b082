// Files as objects: a file is one object, named by its path; a folder is an object that lists what
// is below it.
//
// The id of a name is IdOf(name), and the store keeps the name, if it may be kept. Metadata of a
// file's object is {"kind": "file", "mode": ...} as JSON; a folder's is {"kind": "directory"} and
// its data {"files": ["a", "b/c", ...], "folders": ["empty", ...]}: each file is the object
// NAME/PATH, and folders are those with neither files nor folders in them. Bytes go between file
// and shared memory without a copy of ours in between.
//
// What fails or is interrupted is taken back through an Undo: afterwards nothing of it is left,
// neither objects nor files.
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

// What was moved.
struct Moved {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> skipped;  // of a folder: what is no file, and why
  std::string path;                  // of the file or folder that was read or written; "-" for standard output
};

// 40 hexadecimal digits are an id; anything else is a name.
ObjectId IdOf(const std::string& name_or_id);
bool IsId(const std::string& name_or_id);

// What is read to its end, and has no name that an object could have: "-", which is standard input,
// a pipe or a device.
bool IsStream(const std::string& path);

// Puts a file, a stream, or a folder with all files below it (the folder's own object last, so that
// whoever sees it finds the files). Links to files are followed. A file that changes while it is
// read is an error. kAlreadyExists: objects never change, so remove the old one or choose another
// name.
absl::StatusOr<Moved> PutPath(Client& client, Undo& undo, const std::string& path, const std::string& name);

struct GetSettings {
  std::string output;  // see OutputFile; a folder takes a file under its own name; empty: the object's own name, here
  Timeout timeout = std::chrono::seconds(30);  // of an object, while nothing of it comes
  Protocol protocol = Protocol::kAuto;
};

// Gets a file or a folder and writes it. The files of a folder get their names once all are here.
// Names that would leave the output's folder are refused.
absl::StatusOr<Moved> GetPath(Client& client, Undo& undo, const std::string& name, const GetSettings& settings);

// The names of the files that a folder's object lists, NAME/PATH; none where the object is not a
// folder's. What is too large to be a listing is not pulled for this. kNotFound.
absl::StatusOr<std::vector<std::string>> NamesBelow(Client& client, const std::string& name);

// Deletes every copy of an object in the cluster; a folder's with the files that it lists. Returns
// how many objects.
absl::StatusOr<uint64_t> RemovePath(Client& client, const std::string& name);

// Deletes every copy of the objects that this node holds and whose names begin with `prefix`.
// Returns how many objects.
absl::StatusOr<uint64_t> RemovePrefix(Client& client, const std::string& prefix);

}  // namespace tokamak::cli
