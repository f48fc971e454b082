// FileDescriptor owns a file descriptor and closes it. Move-only.
//
// Whoever is a guest in somebody else's program (lib/verbs/kernel/preload) has to keep that from
// closing what is not its own. So tokamak_on_descriptor(), which is nowhere else, is told what is
// owned.
#pragma once

#include <unistd.h>

#include <utility>

// `owned`: a FileDescriptor has it from now on; else it has it no more, and is about to close it
// unless somebody else owns it now. Any thread.
extern "C" __attribute__((weak)) void tokamak_on_descriptor(int descriptor, bool owned) noexcept;

namespace tokamak::os {

class FileDescriptor final {
 public:
  FileDescriptor() = default;
  // Takes over `fd`; -1 is "none".
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

  // Gives the descriptor up to the caller, who closes it.
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
