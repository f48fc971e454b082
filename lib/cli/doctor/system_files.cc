#include "lib/cli/doctor/system_files.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace tokamak::cli::doctor {

namespace fs = std::filesystem;

std::optional<std::string> SystemFiles::Read(const std::string& path) const {
  std::ifstream file(root_ + path, std::ios::binary);
  if (!file.is_open()) return std::nullopt;
  std::string text(kMaxText, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::nullopt;  // an attribute that has nothing to say
  text.resize(static_cast<size_t>(file.gcount()));
  absl::StripAsciiWhitespace(&text);
  return text;
}

std::optional<uint64_t> SystemFiles::ReadNumber(const std::string& path) const {
  const std::optional<std::string> text = Read(path);
  uint64_t value = 0;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &value)) return std::nullopt;
  return value;
}

std::vector<std::string> SystemFiles::List(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(root_ + path, error), end; !error && entry != end; entry.increment(error)) {
    if (names.size() == kMaxEntries) break;
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

bool SystemFiles::Exists(const std::string& path) const {
  std::error_code error;
  return fs::exists(root_ + path, error);
}

bool SystemFiles::MayReadAndWrite(const std::string& path) const {
  return access((root_ + path).c_str(), R_OK | W_OK) == 0;
}

std::string SystemFiles::LinkName(const std::string& path) const {
  std::error_code error;
  return fs::read_symlink(root_ + path, error).filename().string();
}

}  // namespace tokamak::cli::doctor
