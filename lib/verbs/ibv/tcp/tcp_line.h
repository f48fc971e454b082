// TcpLine carries TcpHellos over one TCP connection on a loop, and reports its end.
//
// A side sends two messages at most, which any socket's buffer holds: so nothing is queued, and a
// socket that takes no more is lost. Keep-alive probes notice a vanished host within
// kLongestSilence.
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
    virtual void OnLineUp() = 0;  // for Connect
    virtual void OnHello(const TcpHello& hello) = 0;
    // Called once. kAborted: refused, or closed by the peer; kInvalidArgument: it broke the format;
    // else the network.
    virtual void OnLineLost(const absl::Status& why) = 0;

   protected:
    ~Owner() = default;
  };

  // Begins to connect a line from `from`, whose port is ignored, to `to`. Errors are the system's.
  static absl::StatusOr<os::FileDescriptor> Connect(const Address& from, const Address& to);

  // `socket` must not block. `connecting`: it comes from Connect, and OnLineUp follows.
  TcpLine(os::EpollLoop& loop, os::FileDescriptor socket, bool connecting, Owner& owner);
  TcpLine(const TcpLine&) = delete;
  TcpLine& operator=(const TcpLine&) = delete;

  // kUnavailable: the line is lost; no OnLineLost follows.
  absl::Status Send(const TcpHello& hello);

  // Gives up the socket, with its unread bytes.
  os::FileDescriptor Release();

 private:
  void OnEvents(uint32_t events);
  void Read();

  os::FileDescriptor socket_;
  bool connecting_;
  Owner& owner_;
  TcpHelloBytes bytes_{};
  size_t size_ = 0;  // how many of bytes_ have come
  os::FdWatch watch_;
};

}  // namespace tokamak::verbs::ibv
