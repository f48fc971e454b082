// KernelStreams are TCP sockets of the kernel.
#pragma once

#include <memory>

#include "lib/os/epoll_loop.h"
#include "tests/bench/streams/byte_stream.h"

namespace tokamak::bench {

class KernelStreams final : public ByteStreams {
 public:
  // Listens at `ip`. `loop` must outlive it.
  KernelStreams(os::EpollLoop& loop, const verbs::Address& ip) : loop_(loop), ip_(ip) {}

  absl::StatusOr<std::unique_ptr<StreamListener>> Listen(const StreamOptions& options,
                                                         AcceptCallback on_accept) override;
  absl::StatusOr<std::unique_ptr<ByteStream>> Connect(const verbs::Address& to, const StreamOptions& options) override;

 private:
  os::EpollLoop& loop_;
  const verbs::Address ip_;
};

}  // namespace tokamak::bench
