// Files as objects: a file is one object, named by its path; a folder is an object that lists its
// content.
//
// The id of a name is IdOf(name), and the store keeps the name if it can. Metadata of a file's
// object is {"kind": "file", "mode": ...} as JSON; a folder's is {"kind": "directory"} and its data
// {"files": ["a", "b/c", ...], "folders": ["empty", ...]}: each file is the object NAME/PATH, and
// folders are the empty ones. Bytes go between file and shared memory without an intermediate copy.
//
// After a failure or interruption an Undo removes the objects and files made so far.
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

// Result of a put or get.
struct Moved {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> skipped;  // entries of a folder that are no files, with the reason
  std::string path;                  // of the file or folder read or written; "-" for standard output
};

// 40 hexadecimal digits are an id; anything else is a name.
ObjectId IdOf(const std::string& name_or_id);
bool IsId(const std::string& name_or_id);

// True for a source that is read to its end and has no name for an object: "-" (standard input), a
// pipe or a device.
bool IsStream(const std::string& path);

// Puts a file, a stream, or a folder with all files below it (the folder's own object last, so that
// its readers find the files). Follows links to files. A file that changes while it is read is an
// error. kAlreadyExists: objects never change, so remove the old one or choose another name.
absl::StatusOr<Moved> PutPath(Client& client, Undo& undo, const std::string& path, const std::string& name);

struct GetSettings {
  std::string output;  // see OutputFile; a folder takes a file under its own name; empty: the object's own name, here
  Timeout timeout = std::chrono::seconds(30);  // of an object, without progress
  Protocol protocol = Protocol::kAuto;
};

// Gets a file or a folder and writes it. The files of a folder get their names once all are here.
// Refuses names that would leave the output's folder.
absl::StatusOr<Moved> GetPath(Client& client, Undo& undo, const std::string& name, const GetSettings& settings);

// Returns the names of the files that a folder's object lists, NAME/PATH; empty if it is not a
// folder's. Does not pull an object too large for a listing. kNotFound.
absl::StatusOr<std::vector<std::string>> NamesBelow(Client& client, const std::string& name);

// Deletes every copy of an object in the cluster; a folder's with the files that it lists. Returns
// the number of objects.
absl::StatusOr<uint64_t> RemovePath(Client& client, const std::string& name);

// Deletes every copy of this node's objects whose names begin with `prefix`. Returns their number.
absl::StatusOr<uint64_t> RemovePrefix(Client& client, const std::string& prefix);

}  // namespace tokamak::cli
