#include "lib/cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/cli/output.h"
#include "lib/os/file_descriptor.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr size_t kStep = 4 << 20;  // bytes moved between two looks at the progress bar
constexpr uint64_t kMaxListingBytes = 16 << 20;
constexpr base::Duration kListingTimeout = base::Seconds(5);

absl::Status FileError(const std::string& verb, const std::string& path) {
  const std::string text = absl::StrCat("cannot ", verb, " ", path, ": ", std::strerror(errno));
  if (errno == ENOENT) return absl::NotFoundError(text);
  return absl::UnknownError(text);
}

std::vector<uint8_t> ToBytes(const std::string& text) { return {text.begin(), text.end()}; }

absl::Status Explain(const absl::Status& status, const std::string& name) {
  if (status.ok()) return status;
  if (!absl::IsAlreadyExists(status)) return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
  return absl::AlreadyExistsError(absl::StrCat(
      name, ": an object of this name exists, and objects never change: tok rm it first, or put --as another name"));
}

// Names travel as JSON.
absl::Status CheckName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("an object's name has at least one byte: give one with --as");
  const std::string kept = json(name).dump(-1, ' ', false, json::error_handler_t::ignore);
  if (json::parse(kept).get<std::string>() == name) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the name '", name, "' is no UTF-8: rename it, or give another with --as"));
}

// Reads a file straight into the new object's shared memory.
absl::StatusOr<uint64_t> PutFile(client::Client& client, const std::string& path, const std::string& name,
                                 Progress& progress) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  const os::FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would wait for a writer
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) return FileError("read", path);
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is neither a file nor a directory"));
  const json metadata = {{"name", name}, {"kind", "file"}, {"mode", info.st_mode & 0777}};
  auto buffer = client.Create(IdOf(name), static_cast<uint64_t>(info.st_size), ToBytes(metadata.dump()));
  if (!buffer.ok()) return Explain(buffer.status(), name);
  absl::Span<uint8_t> rest = buffer->data();
  while (!rest.empty()) {
    const ssize_t got = read(file.get(), rest.data(), std::min(rest.size(), kStep));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path);
    if (got == 0) return absl::AbortedError(absl::StrCat(path, " became shorter while it was read"));
    rest.remove_prefix(static_cast<size_t>(got));
    progress.Advance(static_cast<uint64_t>(got));
  }
  if (absl::Status status = buffer->Seal(); !status.ok()) return Explain(status, name);
  return static_cast<uint64_t>(info.st_size);
}

absl::Status WriteFile(const std::string& path, absl::Span<const uint8_t> bytes, mode_t mode, Progress& progress) {
  const std::string part = absl::StrCat(path, ".part", getpid());
  const os::FileDescriptor file(open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) return FileError("write", part);
  while (!bytes.empty()) {
    const ssize_t put = write(file.get(), bytes.data(), std::min(bytes.size(), kStep));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const absl::Status status = FileError("write", part);
      unlink(part.c_str());
      return status;
    }
    bytes.remove_prefix(static_cast<size_t>(put));
    progress.Advance(static_cast<uint64_t>(put));
  }
  // The file appears whole or not at all.
  if (rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = FileError("write", path);
  unlink(part.c_str());
  return status;
}

// A path in an object comes from somewhere else: it must stay below the folder that it is written to.
bool StaysBelow(const std::string& relative) {
  const fs::path path(relative);
  if (relative.empty() || path.is_absolute()) return false;
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

json ParseMetadata(absl::Span<const uint8_t> metadata) {
  json parsed = json::parse(metadata.begin(), metadata.end(), nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : json::object();
}

bool IsDirectory(const client::Buffer& buffer) {
  const json metadata = ParseMetadata(buffer.metadata());
  return metadata.contains("kind") && metadata["kind"] == "directory";
}

absl::StatusOr<uint64_t> GetFile(client::Client& client, const std::string& name, const std::string& path,
                                 const GetSettings& settings) {
  auto buffer = client.Get(IdOf(name), settings.timeout, settings.protocol);
  if (!buffer.ok()) return Explain(buffer.status(), name);
  const json metadata = ParseMetadata(buffer->metadata());
  const mode_t mode = metadata.contains("mode") && metadata["mode"].is_number_unsigned()
                          ? metadata["mode"].get<unsigned>() & 0777
                          : 0644;
  Progress progress("get", buffer->data().size());
  if (absl::Status status = WriteFile(path, buffer->data(), mode, progress); !status.ok()) return status;
  return buffer->data().size();
}

absl::StatusOr<Moved> GetDirectory(client::Client& client, const std::string& name, const client::Buffer& listing,
                                   const std::string& output, const GetSettings& settings) {
  const json files = ParseMetadata(listing.data()).value("files", json::array());
  Moved moved;
  moved.path = output;
  std::error_code made;
  fs::create_directories(output, made);
  if (made) return absl::UnknownError(absl::StrCat("cannot make ", output, ": ", made.message()));
  for (const json& entry : files) {
    const std::string relative = entry.is_string() ? entry.get<std::string>() : "";
    if (!StaysBelow(relative)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " lists the path '", relative, "', which leaves its folder"));
    }
    const fs::path path = fs::path(output) / relative;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error)
      return absl::UnknownError(absl::StrCat("cannot make ", path.parent_path().string(), ": ", error.message()));
    const auto bytes = GetFile(client, absl::StrCat(name, "/", relative), path.string(), settings);
    if (!bytes.ok()) return bytes.status();
    ++moved.files;
    moved.bytes += *bytes;
  }
  return moved;
}

// The files below a folder, by their paths in it.
struct Tree {
  std::vector<std::string> files;
  uint64_t bytes = 0;
  uint64_t skipped = 0;
};

absl::StatusOr<Tree> Look(const std::string& folder) {
  Tree tree;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error); !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    std::error_code none;
    // A link is followed to a file, as its bytes are what is put, but not to a folder, which may lie above this one.
    if (it->is_directory(none) && !it->is_symlink(none)) continue;
    const uint64_t bytes = it->is_regular_file(none) ? it->file_size(none) : 0;
    if (none || !it->is_regular_file(none)) {
      ++tree.skipped;
      continue;
    }
    tree.files.push_back(it->path().lexically_relative(folder).string());
    tree.bytes += bytes;
  }
  if (error) return absl::UnknownError(absl::StrCat("cannot read ", folder, ": ", error.message()));
  std::sort(tree.files.begin(), tree.files.end());
  return tree;
}

absl::Status PutListing(client::Client& client, const std::vector<std::string>& files, const std::string& name) {
  const json metadata = {{"name", name}, {"kind", "directory"}};
  const json listing = {{"files", files}};
  return Explain(client.Put(IdOf(name), ToBytes(listing.dump()), ToBytes(metadata.dump())), name);
}

absl::StatusOr<Moved> PutDirectory(client::Client& client, const std::string& path, const std::string& name) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  const auto tree = Look(path);
  if (!tree.ok()) return tree.status();
  Progress progress("put", tree->bytes);
  Moved moved;
  moved.path = path;
  moved.skipped = tree->skipped;
  absl::Status status;
  for (const std::string& file : tree->files) {
    const auto bytes = PutFile(client, absl::StrCat(path, "/", file), absl::StrCat(name, "/", file), progress);
    status = bytes.status();
    if (!bytes.ok()) break;
    ++moved.files;
    moved.bytes += *bytes;
  }
  if (status.ok()) status = PutListing(client, tree->files, name);
  if (status.ok()) return moved;
  // All or nothing: what was put belongs to no folder.
  for (uint64_t i = 0; i < moved.files; ++i) {
    client.Delete(IdOf(absl::StrCat(name, "/", tree->files[i]))).IgnoreError();
  }
  return status;
}

}  // namespace

base::ObjectId IdOf(const std::string& name_or_id) {
  const auto id = base::ObjectId::FromHex(name_or_id);
  return id.ok() ? *id : base::ObjectId::FromName(name_or_id);
}

std::string NameIn(absl::Span<const uint8_t> metadata) {
  const json parsed = ParseMetadata(metadata);
  return parsed.contains("name") && parsed["name"].is_string() ? parsed["name"].get<std::string>() : "";
}

absl::StatusOr<Moved> PutPath(client::Client& client, const std::string& path, const std::string& name) {
  std::error_code error;
  if (fs::is_directory(path, error)) return PutDirectory(client, path, name);
  const uint64_t size = fs::file_size(path, error);
  Progress progress("put", error ? 0 : size);
  const auto bytes = PutFile(client, path, name, progress);
  if (!bytes.ok()) return bytes.status();
  return Moved{1, *bytes, 0, path};
}

absl::StatusOr<Moved> GetPath(client::Client& client, const std::string& name, const GetSettings& settings) {
  std::string output = settings.output;
  {
    auto buffer = client.Get(IdOf(name), settings.timeout, settings.protocol);
    if (!buffer.ok()) return Explain(buffer.status(), name);
    if (output.empty()) {
      const std::string own_name = NameIn(buffer->metadata());
      output = fs::path(own_name.empty() ? name : own_name).filename().string();
      if (!StaysBelow(output)) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", own_name, "' is no name for a file: say where to with --output"));
      }
    }
    if (IsDirectory(*buffer)) {
      return GetDirectory(client, NameIn(buffer->metadata()), *buffer, output, settings);
    }
  }
  const auto bytes = GetFile(client, name, output, settings);
  if (!bytes.ok()) return bytes.status();
  return Moved{1, *bytes, 0, output};
}

absl::StatusOr<uint64_t> RemovePath(client::Client& client, const std::string& name) {
  uint64_t removed = 0;
  // Only what is small enough to be a listing is looked at, so that nothing large is pulled here to be deleted.
  const auto stat = client.Stat(IdOf(name));
  if (!stat.ok()) return Explain(stat.status(), name);
  if (stat->object.data_size <= kMaxListingBytes) {
    const auto buffer = client.Get(IdOf(name), kListingTimeout);
    if (buffer.ok() && IsDirectory(*buffer)) {
      for (const json& file : ParseMetadata(buffer->data()).value("files", json::array())) {
        if (!file.is_string()) continue;
        const std::string path = absl::StrCat(NameIn(buffer->metadata()), "/", file.get<std::string>());
        const absl::Status status = client.Delete(IdOf(path));
        if (!status.ok() && !absl::IsNotFound(status)) return Explain(status, path);
        if (status.ok()) ++removed;
      }
    }
  }
  if (absl::Status status = client.Delete(IdOf(name)); !status.ok()) return Explain(status, name);
  return removed + 1;
}

}  // namespace tokamak::cli
