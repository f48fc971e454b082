// TcpLine carries TcpHellos over one TCP connection on a loop, and tells when that ends.
//
// A side sends two messages at most, which any socket's buffer holds: so nothing is queued, and a
// socket that takes no more is lost. A peer whose host is gone is noticed by keep-alive probes
// within kLongestSilence.
//
// Thread rule: the loop's.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/ibv/tcp/tcp_hello.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

constexpr base::Duration kLongestSilence = base::Seconds(11);  // 5 s without a word, then three probes 2 s apart

class TcpLine final {
 public:
  // Each may drop the line.
  class Owner {
   public:
    virtual void OnLineUp() = 0;  // of Connect
    virtual void OnHello(const TcpHello& hello) = 0;
    // Once. kAborted: refused, or closed by the peer; kInvalidArgument: it broke the format; else
    // the network.
    virtual void OnLineLost(const absl::Status& why) = 0;

   protected:
    ~Owner() = default;
  };

  // A line that is being connected from `from` (its port is not used) to `to`. Errors: the
  // system's.
  static absl::StatusOr<os::FileDescriptor> Connect(const Address& from, const Address& to);

  // `socket` does not block. `connecting`: as Connect gave it, and OnLineUp is to come.
  TcpLine(os::EpollLoop& loop, os::FileDescriptor socket, bool connecting, Owner& owner);
  TcpLine(const TcpLine&) = delete;
  TcpLine& operator=(const TcpLine&) = delete;

  // kUnavailable: the line is lost; OnLineLost is not called for it.
  absl::Status Send(const TcpHello& hello);

  // Gives the socket up, with what was not read.
  os::FileDescriptor Release();

 private:
  void OnEvents(uint32_t events);
  void Read();

  os::FileDescriptor socket_;
  bool connecting_;
  Owner& owner_;
  TcpHelloBytes bytes_{};
  size_t size_ = 0;  // of bytes_ that came
  os::FdWatch watch_;
};

}  // namespace tokamak::verbs::ibv
