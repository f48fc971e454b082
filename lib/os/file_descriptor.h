// FileDescriptor owns a file descriptor and closes it. Move-only.
//
// A guest in a foreign program (lib/verbs/kernel/preload), and nobody else, defines
// tokamak_on_descriptor(), to keep the program from closing our descriptors.
#pragma once

#include <unistd.h>

#include <utility>

// `owned`: a FileDescriptor has it from now on; else it is about to be closed unless another owner
// has it. Any thread.
extern "C" __attribute__((weak)) void tokamak_on_descriptor(int descriptor, bool owned) noexcept;

namespace tokamak::os {

class FileDescriptor final {
 public:
  FileDescriptor() = default;
  // -1: none.
  explicit FileDescriptor(int fd) : fd_(fd) { Tell(true); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // The caller closes it.
  [[nodiscard]] int Release() {
    Tell(false);
    return std::exchange(fd_, -1);
  }

  void Close() {
    Tell(false);
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  void Tell(bool owned) const {
    if (fd_ >= 0 && tokamak_on_descriptor != nullptr) tokamak_on_descriptor(fd_, owned);
  }

  int fd_ = -1;
};

}  // namespace tokamak::os
