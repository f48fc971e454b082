// FileDescriptor owns a file descriptor and closes it. Move-only.
//
// A guest in a foreign program (lib/verbs/kernel/preload) must keep the program from closing
// descriptors that it does not own. So the guest, and nobody else, defines tokamak_on_descriptor(),
// which is called at every change of ownership.
#pragma once

#include <unistd.h>

#include <utility>

// `owned`: true if a FileDescriptor owns it from now on; otherwise a FileDescriptor has lost it,
// and it is about to be closed unless it has another owner now. Any thread.
extern "C" __attribute__((weak)) void tokamak_on_descriptor(int descriptor, bool owned) noexcept;

namespace tokamak::os {

class FileDescriptor final {
 public:
  FileDescriptor() = default;
  // Takes over `fd`; -1: none.
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
