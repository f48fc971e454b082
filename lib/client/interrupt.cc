#include "tokamak/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tokamak {

Result<Interrupt> Interrupt::Make() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return Status(StatusCode::kResourceExhausted, "this process has no descriptors left: raise ulimit -n");
  }
  return Interrupt(ends[0], ends[1]);
}

Interrupt& Interrupt::operator=(Interrupt&& other) noexcept {
  if (this == &other) return *this;
  Close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  trigger_ = std::exchange(other.trigger_, -1);
  asked_first_ = std::move(other.asked_first_);
  return *this;
}

Interrupt::~Interrupt() { Close(); }

void Interrupt::Close() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  close(trigger_);
}

// A full pipe has been fired.
void Interrupt::Fire() const {
  const int before = errno;
  while (write(trigger_, "", 1) < 0 && errno == EINTR) {
  }
  errno = before;
}

void Interrupt::Reset() const {
  char fired[256];
  for (ssize_t count = sizeof(fired); count == sizeof(fired) || (count < 0 && errno == EINTR);) {
    count = read(descriptor_, fired, sizeof(fired));
  }
}

bool Interrupt::fired() const {
  pollfd polled = {descriptor_, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

}  // namespace tokamak
