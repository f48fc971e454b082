#include "lib/cli/objects/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "lib/cli/objects/file_tree.h"
#include "lib/cli/objects/output_file.h"
#include "lib/cli/objects/watched_get.h"
#include "lib/os/file_descriptor.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Confirmed: a taken name shows at once, cluster-wide.
PutOptions ConfirmedAs(const std::string& name) {
  PutOptions options;
  options.confirmed = true;
  if (!IsId(name) && PutOptions::MayBeKept(name)) options.name = name;
  return options;
}

constexpr size_t kStep = 4 << 20;  // bytes between updates of the bar
constexpr char kStandardInput[] = "-";
constexpr uint64_t kMaxListingBytes = 16 << 20;
constexpr std::chrono::seconds kListingTimeout(5);

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
  if (base::IsUtf8(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the name '", name, "' is no UTF-8: rename it, or give another with --as"));
}

// ---- putting ----

Undo::Reversal Removal(Client& client, const std::string& name) {
  return [&client, name] {
    const absl::Status status = AsAbsl(client.Delete(IdOf(name)));
    if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();
    return absl::Status(
        status.code(), absl::StrCat(name, ": ", status.message(), " (later: tok rm NAME, or tok rm --prefix FOLDER/)"));
  };
}

// Returns the outcome of sealing; if unknown in time, removes the object, which may be sealed.
absl::Status Outcome(Client& client, const std::string& name, const absl::Status& status) {
  if (absl::IsDeadlineExceeded(status)) client.Delete(IdOf(name)).IgnoreError();
  return Explain(status, name);
}

class FilePut final {
 public:
  // `may_be_stream`: named by somebody. A folder's file that became a pipe has nobody waiting for
  // its writer.
  FilePut(Client& client, Undo& undo, std::string path, std::string name, bool may_be_stream, Progress& progress)
      : client_(client),
        undo_(undo),
        path_(std::move(path)),
        name_(std::move(name)),
        may_be_stream_(may_be_stream),
        progress_(progress) {}

  absl::StatusOr<uint64_t> Run() {
    if (absl::Status status = CheckName(name_); !status.ok()) return status;
    if (absl::Status status = Open(); !status.ok()) return status;
    const mode_t mode = is_stream_ ? 0644 : info_.st_mode & 0777;
    metadata_ = ToBytes(json({{"kind", "file"}, {"mode", mode}}).dump());
    return info_.st_size > 0 && !is_stream_ ? PutInPlace() : PutToTheEnd();
  }

 private:
  absl::Status Open() {
    is_stream_ = may_be_stream_ && IsStream(path_);
    const int descriptor = path_ == kStandardInput
                               ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                               : open(path_.c_str(), O_RDONLY | O_CLOEXEC | (is_stream_ ? 0 : O_NONBLOCK));
    file_ = os::FileDescriptor(descriptor);
    if (!file_.valid() || fstat(file_.get(), &info_) != 0) return FileError("read", path_);
    if (is_stream_ || S_ISREG(info_.st_mode)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path_, " is neither a file nor a folder"));
  }

  // Reads to the end, or until `rest`, the unfilled part, is empty.
  absl::Status Read(Span<uint8_t>& rest) {
    while (!rest.empty()) {
      const ssize_t got = read(file_.get(), rest.data(), std::min(rest.size(), kStep));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN && is_stream_) {  // made non-blocking by another
        pollfd readable = {file_.get(), POLLIN, 0};
        poll(&readable, 1, -1);
        continue;
      }
      if (got < 0) return FileError("read", path_);
      if (got == 0) break;
      rest = rest.subspan(static_cast<size_t>(got));
      progress_.Advance(static_cast<uint64_t>(got));
    }
    return absl::OkStatus();
  }

  absl::Status CheckUnchanged() const {
    if (is_stream_) return absl::OkStatus();
    struct stat now {};
    if (fstat(file_.get(), &now) != 0) return FileError("read", path_);
    const bool same = now.st_size == info_.st_size && now.st_mtim.tv_sec == info_.st_mtim.tv_sec &&
                      now.st_mtim.tv_nsec == info_.st_mtim.tv_nsec;
    if (same) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(path_, " changed while it was read: put it again when nobody writes to it"));
  }

  absl::StatusOr<uint64_t> PutInPlace() {
    auto buffer =
        AsAbsl(client_.Create(IdOf(name_), static_cast<uint64_t>(info_.st_size), metadata_, ConfirmedAs(name_)));
    if (!buffer.ok()) return Explain(buffer.status(), name_);
    Span<uint8_t> rest = buffer->data();
    uint8_t further = 0;
    Span<uint8_t> beyond(&further, 1);
    if (absl::Status status = Read(rest); !status.ok()) return status;
    if (rest.empty()) {
      if (absl::Status status = Read(beyond); !status.ok()) return status;
    }
    if (absl::Status status = CheckUnchanged(); !status.ok()) return status;
    if (!rest.empty() || beyond.empty()) {  // as in /sys: meaningless size
      if (absl::Status status = AsAbsl(buffer->Abort()); !status.ok()) return Explain(status, name_);
      if (lseek(file_.get(), 0, SEEK_SET) != 0) return FileError("read", path_);
      return PutToTheEnd();
    }
    const absl::Status sealed =
        undo_.Do([&] { return Outcome(client_, name_, AsAbsl(buffer->Seal())); }, Removal(client_, name_));
    if (!sealed.ok()) return sealed;
    return static_cast<uint64_t>(info_.st_size);
  }

  // For files without a known size, as in /proc.
  absl::StatusOr<uint64_t> PutToTheEnd() {
    std::vector<uint8_t> bytes;
    size_t size = 0;
    while (true) {
      if (size > client_.capacity()) {
        return absl::ResourceExhaustedError(
            absl::StrCat(path_, " has more bytes than the store (", base::FormatSize(client_.capacity()), ")"));
      }
      if (size == bytes.size()) bytes.resize(std::max<size_t>(2 * size, 64 << 10));
      Span<uint8_t> rest = Span<uint8_t>(bytes).subspan(size);
      if (absl::Status status = Read(rest); !status.ok()) return status;
      size = bytes.size() - rest.size();
      if (!rest.empty()) break;
    }
    if (absl::Status status = CheckUnchanged(); !status.ok()) return status;
    bytes.resize(size);
    const absl::Status put = undo_.Do(
        [&] { return Outcome(client_, name_, AsAbsl(client_.Put(IdOf(name_), bytes, metadata_, ConfirmedAs(name_)))); },
        Removal(client_, name_));
    if (!put.ok()) return put;
    return uint64_t{size};
  }

  Client& client_;
  Undo& undo_;
  const std::string path_;
  const std::string name_;
  const bool may_be_stream_;
  bool is_stream_ = false;
  Progress& progress_;
  os::FileDescriptor file_;
  struct stat info_ {};
  std::vector<uint8_t> metadata_;
};

// Returns a folder's data, checked before any file is put.
absl::StatusOr<std::string> Listing(const FileTree& tree, const std::string& name) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  for (const auto* paths : {&tree.files, &tree.folders}) {
    for (const std::string& path : *paths) {
      if (absl::Status status = CheckName(absl::StrCat(name, "/", path)); !status.ok()) return status;
    }
  }
  std::string listing = json({{"files", tree.files}, {"folders", tree.folders}}).dump();
  if (listing.size() <= kMaxListingBytes) return listing;
  return absl::InvalidArgumentError(absl::StrCat(name, ": the paths of ", tree.files.size(),
                                                 " files together are longer than ", base::FormatSize(kMaxListingBytes),
                                                 ": put the folders in it one by one"));
}

absl::StatusOr<Moved> PutFolder(Client& client, Undo& undo, const std::string& path, const std::string& name) {
  auto tree = ReadTree(path);
  if (!tree.ok()) return tree.status();
  const auto listing = Listing(*tree, name);
  if (!listing.ok()) return listing.status();
  Progress progress("put", tree->bytes);
  Moved moved{0, 0, std::move(tree->skipped), path};
  for (const std::string& file : tree->files) {
    const auto bytes = FilePut(client, undo, absl::StrCat(path, "/", file), absl::StrCat(name, "/", file),
                               /*may_be_stream=*/false, progress)
                           .Run();
    if (!bytes.ok()) return bytes.status();
    ++moved.files;
    moved.bytes += *bytes;
  }
  const std::vector<uint8_t> metadata = ToBytes(json({{"kind", "directory"}}).dump());
  const absl::Status whole = undo.Complete([&] {
    return Outcome(client, name, AsAbsl(client.Put(IdOf(name), ToBytes(*listing), metadata, ConfirmedAs(name))));
  });
  if (!whole.ok()) return whole;
  return moved;
}

absl::StatusOr<Moved> PutFile(Client& client, Undo& undo, const std::string& path, const std::string& name) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  Progress progress("put", error ? 0 : size);
  const auto bytes = FilePut(client, undo, path, name, /*may_be_stream=*/true, progress).Run();
  if (!bytes.ok()) return bytes.status();
  if (absl::Status status = undo.Complete(); !status.ok()) return status;
  return Moved{1, *bytes, {}, path};
}

// ---- getting ----

// True if the untrusted path stays below its folder.
bool StaysBelow(const std::string& relative) {
  const fs::path path(relative);
  if (relative.empty() || path.is_absolute()) return false;
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

json ParseMetadata(absl::Span<const uint8_t> metadata) {
  json parsed = json::parse(metadata.begin(), metadata.end(), nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : json::object();
}

// Also for an id; "": none is kept.
absl::StatusOr<std::string> FullName(Client& client, const std::string& name_or_id) {
  if (!IsId(name_or_id)) return name_or_id;
  auto stat = AsAbsl(client.Stat(IdOf(name_or_id)));
  if (!stat.ok()) return Explain(stat.status(), name_or_id);
  return std::move(stat->object.name);
}

// A folder's files go by its name.
absl::Status CheckFolderName(const std::string& name, const std::string& asked_for) {
  if (!name.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("no name is kept of the folder ", asked_for, ", and its files have names below it: give its name"));
}

bool IsFolder(const Buffer& buffer) {
  const json metadata = ParseMetadata(buffer.metadata());
  return metadata.contains("kind") && metadata["kind"] == "directory";
}

mode_t ModeOf(const Buffer& buffer) {
  const json metadata = ParseMetadata(buffer.metadata());
  const bool said = metadata.contains("mode") && metadata["mode"].is_number_unsigned();
  return said ? metadata["mode"].get<unsigned>() & 0777 : 0644;
}

std::vector<std::string> ListedIn(const Buffer& listing, const char* list) {
  const json parsed = ParseMetadata(listing.data());
  std::vector<std::string> texts;
  if (!parsed.contains(list) || !parsed[list].is_array()) return texts;
  for (const json& text : parsed[list]) texts.push_back(text.is_string() ? text.get<std::string>() : "");
  return texts;
}

absl::Status MakeFolders(const fs::path& folder, Undo& undo) {
  fs::path above;
  for (const fs::path& part : folder) {
    above /= part;
    const std::string path = above.string();
    std::error_code error;
    if (path.empty() || fs::is_directory(path, error)) continue;
    const absl::Status made =
        undo.Do([&] { return mkdir(path.c_str(), 0777) == 0 ? absl::OkStatus() : FileError("make the folder", path); },
                [path] {
                  rmdir(path.c_str());  // others' files keep it
                  return absl::OkStatus();
                });
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputFile> WriteFile(Undo& undo, const Buffer& buffer, const std::string& path) {
  auto file = OutputFile::Open(path, ModeOf(buffer), undo);
  if (!file.ok()) return file.status();
  Progress progress("get", buffer.data().size());
  if (absl::Status status = file->Write(buffer.data(), progress); !status.ok()) return status;
  return file;
}

absl::StatusOr<Moved> GetFile(Undo& undo, const Buffer& buffer, const std::string& path) {
  const auto file = WriteFile(undo, buffer, path);
  if (!file.ok()) return file.status();
  if (absl::Status status = undo.Complete([&] { return file->Publish(); }); !status.ok()) return status;
  return Moved{1, buffer.data().size(), {}, path};
}

absl::Status CheckListed(const std::string& name, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (StaysBelow(path)) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, " lists the path '", path, "', which leaves its folder"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Moved> GetFolder(Client& client, Undo& undo, const std::string& name, const Buffer& listing,
                                const std::string& output, const GetSettings& settings) {
  const std::vector<std::string> paths = ListedIn(listing, "files");
  const std::vector<std::string> folders = ListedIn(listing, "folders");
  for (const auto* listed : {&paths, &folders}) {
    if (absl::Status status = CheckListed(name, *listed); !status.ok()) return status;
  }
  if (absl::Status status = MakeFolders(output, undo); !status.ok()) return status;
  for (const std::string& folder : folders) {
    if (absl::Status status = MakeFolders(fs::path(output) / folder, undo); !status.ok()) return status;
  }
  Moved moved{0, 0, {}, output};
  std::vector<OutputFile> files;
  for (const std::string& path : paths) {
    const fs::path target = fs::path(output) / path;
    if (absl::Status status = MakeFolders(target.parent_path(), undo); !status.ok()) return status;
    const std::string object = absl::StrCat(name, "/", path);
    const auto buffer = WatchedGet(client, object, IdOf(object), settings.timeout, {settings.protocol});
    if (!buffer.ok()) return Explain(buffer.status(), object);
    auto file = WriteFile(undo, *buffer, target.string());
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
    ++moved.files;
    moved.bytes += buffer->data().size();
  }
  const absl::Status whole = undo.Complete([&] {
    absl::Status status;
    for (const OutputFile& file : files) status.Update(file.Publish());
    return status;
  });
  if (!whole.ok()) return whole;
  return moved;
}

absl::StatusOr<Moved> GetInto(Client& client, Undo& undo, const std::string& name, const GetSettings& settings) {
  const auto buffer = WatchedGet(client, name, IdOf(name), settings.timeout, {settings.protocol});
  if (!buffer.ok()) return Explain(buffer.status(), name);
  const auto full_name = FullName(client, name);
  if (!full_name.ok()) return full_name.status();
  const std::string own_name = fs::path(full_name->empty() ? name : *full_name).filename().string();
  const bool folder = IsFolder(*buffer);
  if (folder && IsStandardOutput(settings.output)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is a folder: it cannot be written to standard output"));
  }
  std::error_code error;
  const bool into = !folder && settings.output != "-" && fs::is_directory(settings.output, error);
  if ((settings.output.empty() || into) && !StaysBelow(own_name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", *full_name, "' is no name for a file: say where to with --output"));
  }
  const std::string output =
      into ? (fs::path(settings.output) / own_name).string() : (settings.output.empty() ? own_name : settings.output);
  if (folder) {
    if (absl::Status status = CheckFolderName(*full_name, name); !status.ok()) return status;
    return GetFolder(client, undo, *full_name, *buffer, output, settings);
  }
  if (absl::EndsWith(output, "/")) {
    return absl::NotFoundError(absl::StrCat("there is no folder ", output, ": make it first"));
  }
  return GetFile(undo, *buffer, output);
}

absl::StatusOr<Moved> WholeOrNothing(Undo& undo, absl::StatusOr<Moved> moved) {
  if (moved.ok()) return moved;
  const absl::Status taken_back = undo.TakeBack();
  if (taken_back.ok()) return moved;
  return absl::Status(moved.status().code(),
                      absl::StrCat(moved.status().message(), "; and something is left of it: ", taken_back.message()));
}

}  // namespace

ObjectId IdOf(const std::string& name_or_id) {
  const auto id = ObjectId::FromHex(name_or_id);
  return id.has_value() ? *id : ObjectId::FromName(name_or_id);
}

bool IsId(const std::string& name_or_id) { return ObjectId::FromHex(name_or_id).has_value(); }

bool IsStream(const std::string& path) {
  if (path == kStandardInput) return true;
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode) || S_ISSOCK(info.st_mode));
}

absl::StatusOr<Moved> PutPath(Client& client, Undo& undo, const std::string& path, const std::string& name) {
  std::error_code error;
  const bool folder = path != kStandardInput && fs::is_directory(path, error);
  return WholeOrNothing(undo, folder ? PutFolder(client, undo, path, name) : PutFile(client, undo, path, name));
}

absl::StatusOr<Moved> GetPath(Client& client, Undo& undo, const std::string& name, const GetSettings& settings) {
  return WholeOrNothing(undo, GetInto(client, undo, name, settings));
}

absl::StatusOr<std::vector<std::string>> NamesBelow(Client& client, const std::string& name) {
  std::vector<std::string> names;
  const auto stat = AsAbsl(client.Stat(IdOf(name)));
  if (!stat.ok()) return Explain(stat.status(), name);
  if (stat->object.data_size > kMaxListingBytes) return names;
  const auto buffer = AsAbsl(client.Get(IdOf(name), kListingTimeout));
  if (!buffer.ok() || !IsFolder(*buffer)) return names;
  const auto full_name = FullName(client, name);
  if (!full_name.ok()) return full_name.status();
  if (absl::Status status = CheckFolderName(*full_name, name); !status.ok()) return status;
  for (const std::string& file : ListedIn(*buffer, "files")) names.push_back(absl::StrCat(*full_name, "/", file));
  return names;
}

absl::StatusOr<uint64_t> RemovePath(Client& client, const std::string& name) {
  uint64_t removed = 0;
  const auto below = NamesBelow(client, name);
  if (!below.ok()) return below.status();
  for (const std::string& path : *below) {
    const absl::Status status = AsAbsl(client.Delete(IdOf(path)));
    if (!status.ok() && !absl::IsNotFound(status)) return Explain(status, path);
    if (status.ok()) ++removed;
  }
  if (absl::Status status = AsAbsl(client.Delete(IdOf(name))); !status.ok()) return Explain(status, name);
  return removed + 1;
}

absl::StatusOr<uint64_t> RemovePrefix(Client& client, const std::string& prefix) {
  const auto objects = AsAbsl(client.List());
  if (!objects.ok()) return objects.status();
  uint64_t removed = 0;
  for (const ObjectInfo& object : *objects) {
    const bool sealed = object.state == ObjectState::kSealed;
    if (!sealed || object.name.empty() || !absl::StartsWith(object.name, prefix)) continue;
    const absl::Status status = AsAbsl(client.Delete(object.id));
    if (!status.ok() && !absl::IsNotFound(status)) {
      return absl::Status(status.code(),
                          absl::StrCat(object.name, ": ", status.message(), "; removed before: ", removed));
    }
    if (status.ok()) ++removed;
  }
  return removed;
}

}  // namespace tokamak::cli
