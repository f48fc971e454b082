#include "lib/cli/cluster/demo_files.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tokamak::cli {

namespace fs = std::filesystem;

namespace {

constexpr size_t kFilesPerClass = 40;

constexpr std::array<SizeClass, 5> kClasses = {{{"up to 1 KiB", 1 << 10},
                                                {"up to 32 KiB", 32 << 10},
                                                {"up to 1 MiB", 1 << 20},
                                                {"up to 16 MiB", 16 << 20},
                                                {"above 16 MiB", std::numeric_limits<uint64_t>::max()}}};

std::vector<DemoFile> FindFiles(const std::vector<std::string>& folders, uint64_t most_bytes) {
  std::vector<DemoFile> found;
  for (const std::string& folder : folders) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (auto it = fs::recursive_directory_iterator(folder, options, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code skip;
      if (it->is_symlink(skip) || !it->is_regular_file(skip)) continue;
      const uint64_t bytes = it->file_size(skip);
      if (skip || bytes == 0 || bytes > most_bytes) continue;
      found.push_back({it->path().string(), bytes, ""});
    }
  }
  std::sort(found.begin(), found.end(), [](const DemoFile& a, const DemoFile& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.path < b.path;
  });
  return found;
}

std::vector<DemoFile> Spread(const std::vector<DemoFile>& found) {
  std::array<std::vector<const DemoFile*>, kClasses.size()> by_class;
  for (const DemoFile& file : found) by_class[ClassOf(file.bytes)].push_back(&file);
  std::vector<DemoFile> chosen;
  for (const auto& files : by_class) {
    const size_t count = std::min(files.size(), kFilesPerClass);
    for (size_t i = 0; i < count; ++i) {
      chosen.push_back(*files[count == 1 ? 0 : i * (files.size() - 1) / (count - 1)]);
    }
  }
  return chosen;
}

}  // namespace

absl::Span<const SizeClass> SizeClasses() { return kClasses; }

size_t ClassOf(uint64_t bytes) {
  size_t index = 0;
  while (bytes > kClasses[index].most) ++index;
  return index;
}

absl::StatusOr<std::vector<DemoFile>> ChooseFiles(const std::vector<std::string>& folders, uint64_t least_bytes,
                                                  uint64_t most_bytes) {
  std::vector<DemoFile> spread = Spread(FindFiles(folders, most_bytes));
  if (spread.empty()) return absl::NotFoundError("found no files to move: name a folder with --from");
  // All small ones; the large ones, largest first, until enough.
  uint64_t total = 0;
  std::vector<DemoFile> chosen;
  std::reverse(spread.begin(), spread.end());
  for (const DemoFile& file : spread) {
    const bool small = ClassOf(file.bytes) + 2 < kClasses.size();
    if (!small && total + file.bytes > most_bytes && total >= least_bytes) continue;
    if (!small && total >= least_bytes && ClassOf(file.bytes) + 1 == kClasses.size()) continue;
    total += file.bytes;
    chosen.push_back(file);
  }
  std::reverse(chosen.begin(), chosen.end());
  for (DemoFile& file : chosen) {
    const auto bytes = ReadFile(file.path);
    if (!bytes.ok()) return bytes.status();
    file.bytes = bytes->size();
    file.sha256 = Sha256(*bytes);
  }
  return chosen;
}

std::string Sha256(absl::Span<const uint8_t> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), size});
}

absl::StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  std::vector<uint8_t> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) return absl::UnknownError(absl::StrCat("cannot read all of ", path));
  return bytes;
}

}  // namespace tokamak::cli
