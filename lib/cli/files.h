// Files as objects: a file is one object, named by its path; a directory is an object that lists the files below it.
//
// The id of a name is IdOf(name). Metadata of a file's object is {"name": ..., "kind": "file", "mode": ...} as
// JSON; a directory's is {"name": ..., "kind": "directory"} and its data {"files": ["a", "b/c", ...]}, each of which is the
// object NAME/PATH. Bytes go between file and shared memory without a copy of ours in between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/client/client.h"
#include "lib/client/protocol.h"

namespace tokamak::cli {

// What was moved.
struct Moved {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t skipped =
      0;  // of a directory: what is no file (links to directories, pipes, ...); empty directories do not count
  std::string path;  // of the file or directory that was written
};

// 40 hexadecimal digits are an id; anything else is a name.
base::ObjectId IdOf(const std::string& name_or_id);

// Puts a file, or a directory with all files below it (the directory's own object last, so that whoever sees it finds the
// files; when one fails, none stays). Links to files are followed. kAlreadyExists: objects never change, so remove the old one or choose another name.
absl::StatusOr<Moved> PutPath(client::Client& client, const std::string& path, const std::string& name);

struct GetSettings {
  std::string output;  // a path; empty: the object's own name, in this folder
  base::Duration timeout = base::Seconds(30);
  client::Protocol protocol = client::Protocol::kAuto;
};

// Gets a file or a directory and writes it. Names that would leave the output's folder are refused.
absl::StatusOr<Moved> GetPath(client::Client& client, const std::string& name, const GetSettings& settings);

// Deletes every copy of an object in the cluster; a directory's with the files that it lists. Returns how many objects.
absl::StatusOr<uint64_t> RemovePath(client::Client& client, const std::string& name);

// The name in an object's metadata, or "" where it has none of ours.
std::string NameIn(absl::Span<const uint8_t> metadata);

}  // namespace tokamak::cli
