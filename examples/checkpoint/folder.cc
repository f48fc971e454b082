#include "examples/checkpoint/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {
namespace {

namespace fs = std::filesystem;

constexpr char kPart[] = ".part";

std::string DataOf(const std::string& name) { return name + ".data"; }
std::string ManifestOf(const std::string& name) { return name + ".json"; }
std::string NameOfNumber(uint64_t number) { return absl::StrFormat("%06d", number); }

Status Failed(absl::string_view verb, absl::string_view path) {
  return Status(StatusCode::kUnknown, absl::StrCat("cannot ", verb, " ", path, ": ", std::strerror(errno)));
}

Status WriteAll(int file, Span<const uint8_t> bytes, uint64_t at, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return Failed("write", path);
    bytes = bytes.subspan(static_cast<size_t>(put));
    at += static_cast<uint64_t>(put);
  }
  return Status();
}

Status ReadAll(int file, Span<uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t got = read(file, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path);
    if (got == 0) return Status(StatusCode::kDataLoss, absl::StrCat(path, " is too short"));
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return Status();
}

Result<uint64_t> SizeOf(const File& file, const std::string& path) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return Failed("look at", path);
  return static_cast<uint64_t>(info.st_size);
}

// The numbers of a folder's checkpoints, the newest first.
Result<std::vector<uint64_t>> NumbersIn(const std::string& path) {
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator file(path, error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename().string();
    absl::string_view digits = name;
    uint64_t number = 0;
    if (absl::ConsumeSuffix(&digits, ".json") && absl::SimpleAtoi(digits, &number)) numbers.push_back(number);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return Status(StatusCode::kUnknown, absl::StrCat("cannot read the folder ", path, ": ", error.message()));
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

Result<Manifest> ReadManifest(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Failed("open", path);
  const auto size = SizeOf(file, path);
  if (!size.ok()) return size.status();
  if (*size > Manifest::kMaxBytes)
    return Status(StatusCode::kDataLoss, absl::StrCat(path, " is too long for a manifest"));
  std::string text(*size, '\0');
  Status read = ReadAll(file.get(), text, path);
  if (!read.ok()) return read;
  return Manifest::Parse(text, path);
}

Status ReadData(const Manifest& manifest, Span<uint8_t> state, const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Failed("open", path);
  const auto size = SizeOf(file, path);
  if (!size.ok()) return size.status();
  if (*size != manifest.bytes) {
    return Status(StatusCode::kDataLoss, absl::StrCat(path, " has ", *size, " bytes of ", manifest.bytes));
  }
  for (uint64_t piece = 0; piece < manifest.pieces(); ++piece) {
    const Span<uint8_t> bytes = state.subspan(manifest.PieceBegin(piece), manifest.PieceSize(piece));
    if (Status s = ReadAll(file.get(), bytes, path); !s.ok()) return s;
    if (HashOfPiece(bytes) != manifest.hashes[piece]) {
      return Status(StatusCode::kDataLoss,
                    absl::StrCat(path, " is not what was written: piece ", piece, " has another hash"));
    }
  }
  return Status();
}

Status WrongRun(const std::string& path, const Manifest& found, const std::string& run) {
  return Status(StatusCode::kFailedPrecondition,
                absl::StrCat("the folder ", path, " has checkpoints of run '", found.run, "', not of '", run,
                             "': choose another --folder or --run"));
}

}  // namespace

File::~File() {
  if (valid()) close(descriptor_);
}

Result<std::unique_ptr<CheckpointFolder>> CheckpointFolder::Open(const std::string& path, const std::string& run,
                                                                 OnMoment on_moment) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return Status(StatusCode::kUnknown, absl::StrCat("cannot make the folder ", path, ": ", error.message()));
  File folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return Failed("open", path);
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status(StatusCode::kFailedPrecondition,
                  absl::StrCat("another process writes checkpoints to ", path, ": end it, or choose another --folder"));
  }
  auto made = std::unique_ptr<CheckpointFolder>(new CheckpointFolder(path, std::move(on_moment), std::move(folder)));
  if (Status s = made->Recover(run); !s.ok()) return s;
  return made;
}

Status CheckpointFolder::Recover(const std::string& run) {
  const auto numbers = NumbersIn(path_);
  if (!numbers.ok()) return numbers.status();
  for (const uint64_t number : *numbers) {
    next_ = std::max(next_, number + 1);
    const auto manifest = ReadManifest(PathOf(ManifestOf(NameOfNumber(number))));
    if (!manifest.ok()) continue;
    if (manifest->run != run) return WrongRun(path_, *manifest, run);
    if (!newest_.has_value()) newest_ = *manifest;
  }
  return RemoveOld();
}

Result<std::optional<Manifest>> CheckpointFolder::LoadNewest(const std::string& path, const std::string& run,
                                                             Span<uint8_t> state, std::vector<std::string>& skipped) {
  const auto numbers = NumbersIn(path);
  if (!numbers.ok()) return numbers.status();
  for (const uint64_t number : *numbers) {
    const std::string name = path + "/" + NameOfNumber(number);
    const auto manifest = ReadManifest(ManifestOf(name));
    if (!manifest.ok()) {
      skipped.emplace_back(manifest.status().message());
      continue;
    }
    if (manifest->run != run) return WrongRun(path, *manifest, run);
    if (manifest->bytes != state.size()) {
      return Status(StatusCode::kFailedPrecondition,
                    absl::StrCat("the checkpoints in ", path, " have ", manifest->bytes, " bytes, and the model ",
                                 state.size(), ": give the --state that the run began with"));
    }
    const Status read = ReadData(*manifest, state, DataOf(name));
    if (read.ok()) return std::optional<Manifest>(*manifest);
    skipped.emplace_back(read.message());
  }
  if (skipped.empty()) return std::optional<Manifest>();
  return Status(StatusCode::kDataLoss,
                absl::StrCat("no checkpoint in ", path, " is whole: ", absl::StrJoin(skipped, "; ")));
}

Result<CheckpointFolder::Writer> CheckpointFolder::Begin(uint64_t bytes, uint64_t piece_bytes) {
  const std::string name = NameOfNumber(next_);
  const std::string part = PathOf(DataOf(name) + kPart);
  File file(open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return Failed("make", part);
  return Writer(*this, name, bytes, piece_bytes, std::move(file));
}

CheckpointFolder::Writer::~Writer() {
  if (file_.valid()) unlink(folder_->PathOf(DataOf(name_) + kPart).c_str());
}

Status CheckpointFolder::Writer::Write(uint64_t piece, Span<const uint8_t> bytes) {
  const uint64_t begin = piece * piece_bytes_;
  if (begin >= bytes_ || bytes.size() != std::min(piece_bytes_, bytes_ - begin)) {
    return Status(StatusCode::kInvalidArgument, absl::StrCat("piece ", piece, " has ", bytes.size(), " bytes"));
  }
  return WriteAll(file_.get(), bytes, begin, folder_->PathOf(DataOf(name_)));
}

Status CheckpointFolder::Writer::Commit(const Manifest& manifest) {
  const std::string data = folder_->PathOf(DataOf(name_));
  if (fsync(file_.get()) != 0) return Failed("sync", data);
  if (rename((data + kPart).c_str(), data.c_str()) != 0) return Failed("rename", data);
  file_ = File();  // and what was a part is not removed any more
  if (Status s = folder_->Sync(); !s.ok()) return s;
  folder_->Tell("data", manifest.step);

  const std::string path = folder_->PathOf(ManifestOf(name_));
  {
    const File file(open((path + kPart).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.valid()) return Failed("make", path);
    const std::string text = manifest.ToJson() + "\n";
    Status put = WriteAll(file.get(), text, 0, path);
    if (!put.ok()) return put;
    if (fsync(file.get()) != 0) return Failed("sync", path);
  }
  if (rename((path + kPart).c_str(), path.c_str()) != 0) return Failed("rename", path);
  if (Status s = folder_->Sync(); !s.ok()) return s;
  ++folder_->next_;
  folder_->newest_ = manifest;
  folder_->Tell("manifest", manifest.step);
  return folder_->RemoveOld();
}

Status CheckpointFolder::Sync() const { return fsync(folder_.get()) == 0 ? Status() : Failed("sync", path_); }

// Removes the manifest of an older one first: data without a manifest is nothing. A file that is
// not of a checkpoint is left alone.
Status CheckpointFolder::RemoveOld() const {
  const auto numbers = NumbersIn(path_);
  if (!numbers.ok()) return numbers.status();
  std::vector<std::string> kept;
  for (const uint64_t number : *numbers) {
    const std::string name = NameOfNumber(number);
    const std::string manifest = PathOf(ManifestOf(name));
    if (kept.size() < kKept && ReadManifest(manifest).ok()) {
      kept.push_back(name);
    } else if (kept.size() == kKept && unlink(manifest.c_str()) != 0) {
      return Failed("remove", manifest);
    }
  }
  std::vector<std::string> gone;
  std::error_code error;
  for (fs::directory_iterator file(path_, error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename().string();
    absl::string_view rest = name;
    absl::ConsumeSuffix(&rest, kPart);
    const bool part = rest.size() < name.size();
    const bool data = absl::ConsumeSuffix(&rest, ".data");
    uint64_t number = 0;
    if (!data && !absl::ConsumeSuffix(&rest, ".json")) continue;
    if (!absl::SimpleAtoi(rest, &number) || NameOfNumber(number) != rest) continue;
    if (part || (data && !fs::exists(PathOf(ManifestOf(std::string(rest)))))) gone.push_back(PathOf(name));
  }
  if (error) return Status(StatusCode::kUnknown, absl::StrCat("cannot read the folder ", path_, ": ", error.message()));
  for (const std::string& file : gone) {
    if (unlink(file.c_str()) != 0 && errno != ENOENT) return Failed("remove", file);
  }
  return Status();
}

void CheckpointFolder::Tell(const char* what, uint64_t step) const {
  if (on_moment_ != nullptr) on_moment_(absl::StrCat(what, " ", step));
}

}  // namespace tokamak::example
