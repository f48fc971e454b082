#include "lib/cli/verbs/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::cli::verbs {
namespace {

// Chain of scripts as interpreters, as in the kernel.
constexpr int kMaxScripts = 5;

// Bytes of a script's first line, and of a path, as in the kernel.
constexpr size_t kMaxLine = 256;

constexpr size_t kMaxSegments = 256;

constexpr char kMuslLinker[] = "ld-musl-";

std::string FindInPath(const std::string& command) {
  const char* const path = std::getenv("PATH");
  if (command.find('/') != std::string::npos || path == nullptr) return command;
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    std::string candidate = folder.empty() ? command : absl::StrCat(folder, "/", command);
    struct stat status {};
    const bool is_file = stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (is_file && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return command;
}

// Up to `size` bytes.
std::string ReadAt(const os::FileDescriptor& file, uint64_t offset, size_t size) {
  std::string bytes(size, '\0');
  const ssize_t count = pread(file.get(), bytes.data(), size, static_cast<off_t>(offset));
  bytes.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return bytes;
}

template <typename T>
std::optional<T> ReadStruct(const os::FileDescriptor& file, uint64_t offset) {
  const std::string bytes = ReadAt(file, offset, sizeof(T));
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// Returns /bin/sh for "#!/bin/sh -e"; empty: no script.
std::string InterpreterOfScript(const std::string& head) {
  absl::string_view line = head;
  if (!absl::ConsumePrefix(&line, "#!")) return {};
  line = line.substr(0, line.find('\n'));
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == absl::string_view::npos) return {};
  line.remove_prefix(begin);
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

// Judges programs for this machine; the kernel judges others.
Reach ReachOfElf(const os::FileDescriptor& file) {
  const auto header = ReadStruct<Elf64_Ehdr>(file, 0);
  const bool is_ours = header.has_value() && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
                       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
                       header->e_phentsize == sizeof(Elf64_Phdr);
  if (!is_ours) return Reach::kWhole;
  for (size_t i = 0; i < std::min<size_t>(header->e_phnum, kMaxSegments); ++i) {
    const auto segment = ReadStruct<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment.has_value()) return Reach::kWhole;
    if (segment->p_type != PT_INTERP) continue;
    const std::string linker = ReadAt(file, segment->p_offset, std::min<size_t>(segment->p_filesz, PATH_MAX)).c_str();
    return absl::StartsWith(linker.substr(linker.rfind('/') + 1), kMuslLinker) ? Reach::kMusl : Reach::kWhole;
  }
  return Reach::kStatic;
}

bool HasMoreRights(const os::FileDescriptor& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return false;
  const bool is_of_another_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
  const bool is_of_another_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
  const bool has_capabilities = geteuid() != 0 && fgetxattr(file.get(), "security.capability", nullptr, 0) > 0;
  return is_of_another_user || is_of_another_group || has_capabilities;
}

}  // namespace

ProgramFile FindProgramFile(const std::string& command) {
  ProgramFile program = {FindInPath(command)};
  for (int scripts = 0; scripts < kMaxScripts; ++scripts) {
    const os::FileDescriptor file(open(program.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) return program;
    const std::string interpreter = InterpreterOfScript(ReadAt(file, 0, kMaxLine));
    if (interpreter.empty()) {
      program.reach = HasMoreRights(file) ? Reach::kMoreRights : ReachOfElf(file);
      return program;
    }
    program.path = interpreter;
  }
  return program;
}

}  // namespace tokamak::cli::verbs
