// FileDescriptor owns a file descriptor and closes it. Move-only.
#pragma once

#include <unistd.h>

#include <utility>

namespace tokamak::os {

class FileDescriptor final {
 public:
  FileDescriptor() = default;
  // Takes over `fd`; -1 is "none".
  explicit FileDescriptor(int fd) : fd_(fd) {}
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
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }

  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace tokamak::os
