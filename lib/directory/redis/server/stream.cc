#include "lib/directory/redis/server/stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tokamak::directory::redis {
namespace {

class Plain final : public Stream {
 public:
  explicit Plain(os::FileDescriptor socket) : socket_(std::move(socket)) {}

  absl::StatusOr<bool> Shake() override { return true; }

  absl::StatusOr<size_t> Read(char* into, size_t size) override {
    const ssize_t got = recv(socket_.get(), into, size, MSG_DONTWAIT);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return StreamEnded();
    if (errno == EAGAIN || errno == EINTR) return 0;
    return StreamFailed(errno);
  }

  absl::StatusOr<size_t> Write(const char* from, size_t size) override {
    const ssize_t sent = send(socket_.get(), from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EINTR) return 0;
    return StreamFailed(errno);
  }

  bool awaits_room() const override { return false; }
  int descriptor() const override { return socket_.get(); }

 private:
  const os::FileDescriptor socket_;
};

}  // namespace

std::unique_ptr<Stream> PlainStream(os::FileDescriptor socket) { return std::make_unique<Plain>(std::move(socket)); }

absl::Status StreamEnded() { return absl::UnavailableError("the server closed the connection"); }
absl::Status StreamFailed(int error) { return absl::UnavailableError(strerror(error)); }

}  // namespace tokamak::directory::redis
