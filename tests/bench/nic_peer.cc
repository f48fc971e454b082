#include "tests/bench/nic_peer.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::bench {
namespace {

constexpr uint16_t kService = 7;
constexpr size_t kOfferLength = 12;     // private data: where the arena is, and its key
constexpr size_t kMostConnecting = 32;  // at once; a listener holds 64
constexpr base::Duration kPeerPatience = base::Seconds(30);

// The other process's end: accepts, keeps, echoes.
class Passive final {
 public:
  absl::Status Open(const verbs::Address& address, const Setting& setting, absl::Span<uint8_t> arena) {
    setting_ = setting;
    auto end = NicEnd::Open(address, setting, arena, [this](const verbs::Completion& c) { OnCompletion(c); });
    if (!end.ok()) return end.status();
    end_ = *std::move(end);
    verbs::Address service = address;
    service.port = kService;
    auto listener = end_->manager().Listen(
        end_->loop(), service, [this](std::unique_ptr<verbs::ConnectionRequest> request) { Accept(*request); });
    if (!listener.ok()) return listener.status();
    listener_ = *std::move(listener);
    return absl::OkStatus();
  }

  os::EpollLoop& loop() { return end_->loop(); }

 private:
  // Rejects requests that it does not accept, which the other side reports.
  void Accept(verbs::ConnectionRequest& request) {
    auto queue_pair = end_->AddQueuePair(setting_.echo);
    if (!queue_pair.ok()) {
      LOG(ERROR) << queue_pair.status();
      return;
    }
    uint8_t offer[kOfferLength];
    base::StoreLittle<uint64_t>(offer, reinterpret_cast<uintptr_t>(end_->arena().data()));
    base::StoreLittle<uint32_t>(offer + 8, end_->rkey());
    verbs::ConnectOptions options;
    options.private_data = offer;
    auto connection = request.Accept(**queue_pair, options, [](const verbs::ConnectionEvent&) {});
    if (connection.ok()) end_->Keep(*std::move(connection));
  }

  void OnCompletion(const verbs::Completion& completion) {
    if ((completion.id & NicEnd::kReceive) == 0) return;
    const size_t index = completion.id & ~NicEnd::kReceive;
    CHECK(end_->PostReceive(index).ok());
    const absl::Status sent = end_->PostSmall(index);
    CHECK(sent.ok()) << sent;
  }

  Setting setting_;
  std::unique_ptr<NicEnd> end_;
  std::unique_ptr<verbs::Listener> listener_;
};

// Connects the queue pairs of one end.
class Connector final {
 public:
  Connector(NicEnd& end, const Setting& setting, const verbs::Address& service)
      : end_(end), setting_(setting), service_(service) {}

  absl::StatusOr<RemoteArena> Run() {
    const auto done = [this] { return !status_.ok() || established_ == setting_.queue_pairs; };
    for (uint32_t i = 0; i < std::min<size_t>(kMostConnecting, setting_.queue_pairs); ++i) ConnectNext();
    if (!end_.loop().RunUntil(done, end_.loop().Now() + kPeerPatience)) {
      return absl::DeadlineExceededError(absl::StrCat(established_, " of ", setting_.queue_pairs, " connected"));
    }
    if (!status_.ok()) return status_;
    return arena_;
  }

 private:
  void ConnectNext() {
    auto queue_pair = end_.AddQueuePair(setting_.echo);
    if (!queue_pair.ok()) return Fail(queue_pair.status());
    verbs::ConnectOptions options;
    options.deadline = kPeerPatience;
    auto connection = end_.manager().Connect(**queue_pair, service_, options,
                                             [this](const verbs::ConnectionEvent& event) { OnEvent(event); });
    if (!connection.ok()) return Fail(connection.status());
    end_.Keep(*std::move(connection));
  }

  void OnEvent(const verbs::ConnectionEvent& event) {
    if (event.kind != verbs::ConnectionEvent::Kind::kEstablished || event.private_data.size() < kOfferLength) {
      return Fail(absl::UnavailableError(absl::StrCat(verbs::ToString(event.kind), ": ", event.status.ToString())));
    }
    arena_.address = base::LoadLittle<uint64_t>(event.private_data.data());
    arena_.rkey = base::LoadLittle<uint32_t>(event.private_data.data() + 8);
    ++established_;
    if (end_.queue_pairs() < setting_.queue_pairs) ConnectNext();
  }

  void Fail(const absl::Status& status) { status_.Update(status); }

  NicEnd& end_;
  const Setting setting_;
  const verbs::Address service_;
  RemoteArena arena_;
  size_t established_ = 0;
  absl::Status status_;
};

}  // namespace

struct NicPeer::Order {
  enum class Kind : uint32_t { kOpen, kMemory, kClose };
  Kind kind = Kind::kOpen;
  Setting setting;
};

struct NicPeer::Reply {
  MemoryUse memory;
  char trouble[256] = {};  // empty: none
};

absl::StatusOr<std::unique_ptr<NicPeer>> NicPeer::Start(const verbs::Address& address, uint64_t arena) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError("cannot make a socket pair");
  }
  os::FileDescriptor ours(ends[0]);
  os::FileDescriptor theirs(ends[1]);
  const pid_t process = fork();
  if (process < 0) return absl::UnavailableError("cannot fork");
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ours.Close();
    Serve(theirs.get(), address, arena);
    _exit(0);
  }
  return std::unique_ptr<NicPeer>(new NicPeer(std::move(ours), process, address));
}

NicPeer::~NicPeer() {
  socket_.Close();
  waitpid(process_, nullptr, 0);
}

absl::Status NicPeer::Open(const Setting& setting) { return Ask({Order::Kind::kOpen, setting}).status(); }
absl::Status NicPeer::Close() { return Ask({Order::Kind::kClose, {}}).status(); }
absl::StatusOr<MemoryUse> NicPeer::Memory() { return Ask({Order::Kind::kMemory, {}}); }

absl::StatusOr<MemoryUse> NicPeer::Ask(const Order& order) {
  Reply reply;
  if (send(socket_.get(), &order, sizeof order, MSG_NOSIGNAL) != sizeof order ||
      recv(socket_.get(), &reply, sizeof reply, 0) != sizeof reply) {
    return absl::UnavailableError("the other process is gone");
  }
  if (reply.trouble[0] != 0) return absl::UnavailableError(absl::StrCat("the other process: ", reply.trouble));
  return reply.memory;
}

absl::StatusOr<RemoteArena> NicPeer::Connect(NicEnd& end, const Setting& setting) {
  verbs::Address service = address_;
  service.port = kService;
  return Connector(end, setting, service).Run();
}

// The other process.
void NicPeer::Serve(int fd, const verbs::Address& address, uint64_t arena) {
  std::vector<uint8_t> bytes(arena, 0x5a);
  Order order;
  while (recv(fd, &order, sizeof order, 0) == sizeof order) {
    if (order.kind != Order::Kind::kOpen) return;
    const Reply reply = ServeOpened(fd, address, order.setting, absl::MakeSpan(bytes));
    if (send(fd, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) return;
  }
}

// Returns the answer to the order that ended it.
NicPeer::Reply NicPeer::ServeOpened(int fd, const verbs::Address& address, const Setting& setting,
                                    absl::Span<uint8_t> arena) {
  Passive passive;
  Reply reply;
  if (absl::Status s = passive.Open(address, setting, arena); !s.ok()) {
    s.ToString().copy(reply.trouble, sizeof reply.trouble - 1);
    return reply;
  }
  bool ended = send(fd, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply;
  const os::FdWatch watch = passive.loop().Watch(fd, EPOLLIN, [&](uint32_t) {
    Order order;
    ended = recv(fd, &order, sizeof order, 0) != sizeof order || order.kind != Order::Kind::kMemory;
    if (ended) return;
    Reply answer;
    answer.memory = MeasureMemory();
    ended = send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer;
  });
  while (!ended) passive.loop().RunUntil([&] { return ended; }, passive.loop().Now() + kPeerPatience);
  return reply;
}

}  // namespace tokamak::bench
