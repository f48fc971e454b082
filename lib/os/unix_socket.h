// Unix sockets that carry frames: whole messages with a length before them, and descriptors beside them.
//
// UnixListener and UnixConnection live on an EpollLoop and never wait (the daemon); UnixSocket waits, up to a deadline (the
// client library). The socket is a stream, not a sequence of packets: a packet may not be larger than the socket's buffer,
// and a frame may.
//
//   frame   length 4, little-endian | body
//
// The other side is untrusted: frames have at most kMaxFrame bytes, descriptors at most kMaxDescriptors for each, and what
// waits to be sent is bounded by kMaxQueued.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {

constexpr size_t kMaxFrame = 1024 * 1024 + 64;      // bytes of a body
constexpr size_t kMaxDescriptors = 4;               // with one frame
constexpr size_t kMaxQueued = 8 * 1024 * 1024;      // bytes that wait for a slow reader
constexpr size_t kMaxWaitingConnects = 128;

struct Frame {
  std::vector<uint8_t> body;
  std::vector<FileDescriptor> descriptors;
};

// Puts frames together from what a stream brings. One stream's; not thread-safe.
class FrameAssembler final {
 public:
  // Reads what is there, at most one read. kUnavailable: the other side ended. kInvalidArgument: it broke the format. True
  // when something came, false when there is nothing now.
  absl::StatusOr<bool> ReadSome(int fd);

  // Takes the next whole frame out; false when there is none.
  bool Next(Frame* frame);

  // The stream makes no sense; nothing more comes out of it.
  bool bad() const { return bad_; }

 private:
  static constexpr size_t kReadSize = 64 * 1024;

  std::vector<uint8_t> bytes_;
  size_t begin_ = 0;
  std::vector<FileDescriptor> descriptors_;  // that came with bytes of the frame under way
  bool bad_ = false;
};

// The daemon's end of one client. Dropping it closes.
class UnixConnection final {
 public:
  // Runs with each whole frame; may drop the connection.
  using FrameHandler = std::function<void(Frame frame)>;
  // The connection is over: the other side ended, broke the format, or did not read. May drop the connection.
  using EndHandler = std::function<void(const absl::Status& why)>;

  // Takes over a connected socket. Handlers run on `loop`, never inside a call.
  UnixConnection(EpollLoop& loop, FileDescriptor socket, FrameHandler on_frame, EndHandler on_end);
  ~UnixConnection();
  UnixConnection(const UnixConnection&) = delete;
  UnixConnection& operator=(const UnixConnection&) = delete;

  // Sends, or queues what the socket does not take now. Beyond kMaxQueued the connection ends. Descriptors are copied by the
  // kernel when their frame leaves; they must stay open until then.
  void Send(absl::Span<const uint8_t> body, absl::Span<const int> descriptors = {});

  size_t queued_bytes() const { return queued_bytes_; }

  // Of the process that connected.
  pid_t peer_pid() const { return peer_pid_; }

 private:
  struct Outgoing {
    std::vector<uint8_t> bytes;
    size_t sent = 0;
    std::vector<int> descriptors;
  };

  void OnEvents(uint32_t events);
  void ReadFrames();
  void Flush();
  void End(const absl::Status& why);

  EpollLoop& loop_;
  const FileDescriptor socket_;
  const FrameHandler on_frame_;
  const EndHandler on_end_;
  pid_t peer_pid_ = 0;
  FrameAssembler assembler_;
  std::deque<Outgoing> queue_;
  size_t queued_bytes_ = 0;
  bool ended_ = false;
  base::Timer ending_;
  std::shared_ptr<bool> alive_;  // false once dropped: a handler may drop this
  FdWatch watch_;
};

// Accepts connections at a path. Dropping it stops that and removes the path.
class UnixListener final {
 public:
  using Handler = std::function<void(FileDescriptor socket)>;

  // Only this user may connect (file mode 0600). A socket file that a dead process left is replaced. kAlreadyExists: somebody
  // listens there. kInvalidArgument: the path is too long (107 bytes), or a file that is no socket.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Listen(EpollLoop& loop, const std::string& path, Handler handler);
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

 private:
  UnixListener(EpollLoop& loop, std::string path, FileDescriptor lock, FileDescriptor socket, Handler handler);
  void Accept();

  const std::string path_;
  const FileDescriptor lock_;
  const FileDescriptor socket_;
  const Handler handler_;
  FdWatch watch_;
};

// The client's end, which waits. One thread may send while another receives.
class UnixSocket final {
 public:
  // kNotFound: no such path. kUnavailable: nobody listens there.
  static absl::StatusOr<UnixSocket> Connect(const std::string& path);

  // Sends one frame. kDeadlineExceeded: nothing, or only a part was sent; the socket is good for nothing after.
  absl::Status Send(absl::Span<const uint8_t> body, base::Duration deadline);

  // The next frame. kDeadlineExceeded: none was complete; ask again. kUnavailable: the other side ended.
  absl::StatusOr<Frame> Receive(base::Duration deadline);

  // Makes a Receive that waits return kUnavailable, from any thread.
  void Shutdown();

 private:
  explicit UnixSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  FileDescriptor socket_;
  FrameAssembler assembler_;
};

}  // namespace tokamak::os
