#include "tests/bench/tcp_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

namespace tokamak::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Precedes what it describes.
struct Order {
  enum class Kind : uint32_t { kReply, kSwallow, kEchoBusy, kEchoBlocking };
  Kind kind;
  uint32_t unused = 0;
  uint64_t size;   // of a message
  uint64_t arena;  // kSwallow: bytes to receive into, round and round
};

// A stream comes in runs of messages, each preceded by how many they are; 0 ends it.
using Run = uint64_t;
constexpr uint64_t kRunBytes = 4 << 20;

bool ReadAll(int fd, void* bytes, uint64_t size, bool busy = false) {
  auto* to = static_cast<uint8_t*>(bytes);
  while (size > 0) {
    const ssize_t got = recv(fd, to, size, busy ? MSG_DONTWAIT : 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<uint64_t>(got);
  }
  return true;
}

bool WriteAll(int fd, const void* bytes, uint64_t size, int flags = 0) {
  const auto* from = static_cast<const uint8_t*>(bytes);
  while (size > 0) {
    const ssize_t put = send(fd, from, size, MSG_NOSIGNAL | flags);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put;
    size -= static_cast<uint64_t>(put);
  }
  return true;
}

bool Swallow(int fd, const Order& order, std::vector<uint8_t>* bytes) {
  if (bytes->size() < order.arena) bytes->assign(order.arena, 0x5a);
  uint64_t at = 0;
  uint64_t total = 0;
  for (Run run = 0; ReadAll(fd, &run, sizeof run);) {
    if (run == 0) return WriteAll(fd, &total, sizeof total);
    for (; run > 0; --run) {
      if (at + order.size > order.arena) at = 0;
      if (!ReadAll(fd, &(*bytes)[at], order.size)) return false;
      at += order.size;
      total += order.size;
    }
  }
  return false;
}

// Until a message that begins with a zero.
bool Echo(int fd, const Order& order, std::vector<uint8_t>* bytes) {
  bytes->resize(std::max<uint64_t>(bytes->size(), order.size));
  const bool busy = order.kind == Order::Kind::kEchoBusy;
  while (ReadAll(fd, bytes->data(), order.size, busy)) {
    if (!WriteAll(fd, bytes->data(), order.size)) return false;
    if (bytes->front() == 0) return true;
  }
  return false;
}

// The other process, until the connection ends.
[[noreturn]] void Serve(int listener) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int fd = accept(listener, nullptr, nullptr);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::vector<uint8_t> bytes;
  Order order{};
  bool going = true;
  while (going && ReadAll(fd, &order, sizeof order)) {
    switch (order.kind) {
      case Order::Kind::kReply:
        if (bytes.size() < order.size) bytes.resize(order.size, 0x5a);
        going = WriteAll(fd, bytes.data(), order.size);
        break;
      case Order::Kind::kSwallow:
        going = Swallow(fd, order, &bytes);
        break;
      case Order::Kind::kEchoBusy:
      case Order::Kind::kEchoBlocking:
        going = Echo(fd, order, &bytes);
        break;
    }
  }
  _exit(0);
}

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

absl::Status Broken() { return absl::UnavailableError("the TCP connection broke"); }

}  // namespace

absl::StatusOr<std::unique_ptr<TcpPeer>> TcpPeer::Start() {
  const os::FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return absl::UnavailableError("cannot listen on loopback");
  }
  const pid_t process = fork();
  if (process < 0) return absl::UnavailableError("cannot fork");
  if (process == 0) Serve(listener.get());
  os::FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected = connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  std::unique_ptr<TcpPeer> peer(new TcpPeer(std::move(client), process));
  if (!connected) {
    kill(process, SIGKILL);
    return absl::UnavailableError("cannot connect on loopback");
  }
  const int on = 1;
  setsockopt(peer->socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return peer;
}

TcpPeer::~TcpPeer() {
  socket_.Close();
  waitpid(process_, nullptr, 0);
}

absl::Status TcpPeer::Fetch(absl::Span<uint8_t> to) {
  const Order order{Order::Kind::kReply, 0, to.size(), 0};
  if (!WriteAll(socket_.get(), &order, sizeof order) || !ReadAll(socket_.get(), to.data(), to.size())) return Broken();
  return absl::OkStatus();
}

absl::StatusOr<double> TcpPeer::Stream(absl::Span<const uint8_t> arena, uint64_t message, double seconds) {
  const int fd = socket_.get();
  const Order order{Order::Kind::kSwallow, 0, message, arena.size()};
  if (!WriteAll(fd, &order, sizeof order)) return Broken();
  const Run run = std::max<uint64_t>(1, kRunBytes / message);
  const auto begin = Clock::now();
  uint64_t at = 0;
  while (SecondsSince(begin) < seconds) {
    if (!WriteAll(fd, &run, sizeof run)) return Broken();
    for (Run i = 0; i < run; ++i, at += message) {
      if (at + message > arena.size()) at = 0;
      if (!WriteAll(fd, &arena[at], message)) return Broken();
    }
  }
  const Run end = 0;
  uint64_t total = 0;
  if (!WriteAll(fd, &end, sizeof end) || !ReadAll(fd, &total, sizeof total)) return Broken();
  return static_cast<double>(total) / SecondsSince(begin);
}

absl::StatusOr<std::vector<double>> TcpPeer::PingPong(uint64_t size, bool busy, double seconds) {
  const int fd = socket_.get();
  const Order order{busy ? Order::Kind::kEchoBusy : Order::Kind::kEchoBlocking, 0, size, 0};
  if (!WriteAll(fd, &order, sizeof order)) return Broken();
  std::vector<uint8_t> bytes(size, 1);
  std::vector<double> halves;
  const auto begin = Clock::now();
  for (bool last = false; !last;) {
    last = SecondsSince(begin) >= seconds;
    bytes.front() = last ? 0 : 1;
    const auto sent = Clock::now();
    if (!WriteAll(fd, bytes.data(), size) || !ReadAll(fd, bytes.data(), size, busy)) return Broken();
    halves.push_back(SecondsSince(sent) / 2);
  }
  return halves;
}

}  // namespace tokamak::bench
