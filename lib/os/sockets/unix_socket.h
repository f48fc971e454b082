// Unix sockets that carry frames (unix_frame.h).
//
// UnixListener and UnixConnection, on an EpollLoop, never wait (the daemon); UnixSocket waits, up
// to a deadline (the client library). The socket is a stream, since a frame may be larger than the
// socket's buffer, and one call moves many small ones.
//
// The other side is untrusted: frames and descriptors are bounded, unsent bytes by kMaxQueued, and
// a client's frames are handled kFramesPerTurn at a time. A peer that may have many connections
// gets one budget for all of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/byte_budget.h"
#include "lib/base/lifetime.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/sockets/socket_access.h"
#include "lib/os/sockets/unix_frame.h"

namespace tokamak::os {

constexpr size_t kMaxQueued = 8 * 1024 * 1024;  // bytes that wait for a slow reader
constexpr int kMaxWaitingConnects = 128;
constexpr int kFramesPerTurn = 64;

// The process at the other end, as the kernel names it.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

PeerCredentials PeerOf(int socket);

// The daemon's end of one client. Dropping it closes, after one try to send queued frames.
class UnixConnection final {
 public:
  // Gets each whole frame; may drop the connection.
  using FrameHandler = std::function<void(Frame frame)>;
  // Runs once when the connection is over, after all whole frames that came before: the other side
  // ended, broke the format, or did not read. May drop the connection.
  using EndHandler = std::function<void(const absl::Status& why)>;

  // Takes over a connected socket. Handlers run on `loop`, never inside a call. Unsent answers and
  // incomplete frames are claimed of `budget`, which must outlive it (null: not counted); when that
  // is exhausted, the connection ends.
  UnixConnection(EpollLoop& loop, FileDescriptor socket, FrameHandler on_frame, EndHandler on_end,
                 base::ByteBudget* budget = nullptr);
  ~UnixConnection();
  UnixConnection(const UnixConnection&) = delete;
  UnixConnection& operator=(const UnixConnection&) = delete;

  // Queues a frame; those of one task leave together, right after it. Beyond kMaxQueued the
  // connection ends. Both are copied; bounds as for FrameQueue::Add. No effect once the connection
  // is over.
  void Send(absl::Span<const uint8_t> body, absl::Span<const int> descriptors = {});

  size_t queued_bytes() const { return queue_.bytes(); }
  const PeerCredentials& peer() const { return peer_; }
  pid_t peer_pid() const { return peer_.pid; }

 private:
  // Outlive a connection that is dropped inside one of them.
  struct Handlers {
    FrameHandler on_frame;
    EndHandler on_end;
  };

  void OnEvents(uint32_t events);
  void Read();
  void HandleFrames();
  void Flush();
  void WatchWhatIsNeeded();
  void Claim();
  void End(const absl::Status& why);

  EpollLoop& loop_;
  const FileDescriptor socket_;
  const std::shared_ptr<const Handlers> handlers_;
  PeerCredentials peer_;
  FrameAssembler assembler_;
  FrameQueue queue_;
  base::ByteClaim claim_;     // of the bytes of both
  bool flush_waits_ = false;  // true while it waits for room in the socket
  bool deaf_ = false;         // true if the other side reads no more
  bool ended_ = false;
  base::Timer flush_;
  base::Timer more_frames_;
  base::Timer end_;
  FdWatch watch_;
  const base::Lifetime lifetime_;
};

// Accepts connections at a path. Dropping it stops that and removes the path.
class UnixListener final {
 public:
  // Gets each connection, a non-blocking socket; may drop the listener.
  using Handler = std::function<void(FileDescriptor socket)>;

  // Listens at `path`, replacing a dead process's socket. kAlreadyExists: somebody listens there.
  // kInvalidArgument: the path is too long (107 bytes), or is a file that is no socket. The lock
  // `path`.lock exists while the listener lives.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Listen(EpollLoop& loop, const std::string& path, Handler handler,
                                                              SocketAccess access = SocketAccess::kUser);
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

 private:
  UnixListener(EpollLoop& loop, std::string path, FileDescriptor lock, FileDescriptor socket, Handler handler);
  void Accept();

  EpollLoop& loop_;
  const std::string path_;
  const FileDescriptor lock_;
  const FileDescriptor socket_;
  const ino_t inode_;  // of the socket's file: another's in its place is not ours to remove
  const std::shared_ptr<const Handler> handler_;
  bool starved_ = false;  // true if the process has no descriptor left for new connections
  base::Timer retry_;
  FdWatch watch_;
};

// Waits until one of two descriptors is readable, or `deadline` has passed. Returns true if the
// first is.
bool AwaitReadable(int first, int second, base::Duration deadline);

// The client's end, which waits. One thread may send while another receives.
class UnixSocket final {
 public:
  // Errors are those of ConnectSocketPath.
  static absl::StatusOr<UnixSocket> Connect(const std::string& path, base::Duration deadline = base::Seconds(5));

  // Sends one frame; bounds as for FrameQueue::Add. kInvalidArgument: too long. kDeadlineExceeded:
  // none or only a part of it was sent, and the socket is unusable afterwards. kUnavailable: the
  // other side ended.
  absl::Status Send(absl::Span<const uint8_t> body, absl::Span<const int> descriptors, base::Duration deadline);
  absl::Status Send(absl::Span<const uint8_t> body, base::Duration deadline) { return Send(body, {}, deadline); }
  // The same for several, in one write as far as the socket takes them.
  absl::Status SendAll(absl::Span<const std::vector<uint8_t>> bodies, base::Duration deadline);
  // Sends all, or nothing: returns false if the socket took nothing within `patience`.
  absl::StatusOr<bool> SendAllOrNone(absl::Span<const std::vector<uint8_t>> bodies, base::Duration patience,
                                     base::Duration deadline);

  // Receives the next frame. kDeadlineExceeded: none was complete; ask again. kCancelled: it would
  // have waited, and the descriptor `interrupt` is readable; -1: none. Other errors are those of
  // FrameAssembler::ReadSome.
  absl::StatusOr<Frame> Receive(base::Duration deadline, int interrupt = -1);
  // Makes Receive spin for this long before it sleeps.
  void SetSpin(base::Duration spin) { spin_ = spin; }
  // Takes a frame that came together with the last; never waits, and reads no more.
  bool Next(Frame* frame) { return assembler_.Next(frame); }

  // Makes a waiting Receive return kUnavailable, from any thread.
  void Shutdown();

  // Leaves the connection to processes that share it, such as the parent. No other call may follow.
  void Close() { socket_ = FileDescriptor(); }

  // Readable when Receive has something to read, or the other side has ended.
  int descriptor() const { return socket_.get(); }

  // True if the other side has ended; earlier frames may still have to be received. From any
  // thread; never waits.
  bool ended() const;

  PeerCredentials peer() const;

 private:
  // The longest wait of a reading call before it looks at its deadline.
  static constexpr base::Duration kWaitTick = base::Seconds(1);

  explicit UnixSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  absl::Status AddAll(absl::Span<const std::vector<uint8_t>> bodies);
  absl::Status SendQueue(base::Duration deadline);
  absl::StatusOr<bool> Spin(base::Duration deadline);

  FileDescriptor socket_;
  base::Duration spin_;
  FrameQueue queue_;  // empty except during a Send
  FrameAssembler assembler_;
};

}  // namespace tokamak::os
