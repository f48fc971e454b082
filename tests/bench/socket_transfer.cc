#include "tests/bench/socket_transfer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lib/base/bytes.h"
#include "lib/verbs/ibv/socket_address.h"

namespace tokamak::bench {

namespace {

using Header = std::array<uint8_t, SocketTransfer::kHeaderSize>;
using Request = std::array<uint8_t, SocketTransfer::kRequestSize>;

// Where each field of a header is.
constexpr size_t kStatusAt = 4;
constexpr size_t kIdAt = 8;
constexpr size_t kGenerationAt = kIdAt + base::ObjectId::kSize;
constexpr size_t kDataSizeAt = kGenerationAt + 8;
constexpr size_t kMetadataSizeAt = kDataSizeAt + 8;
static_assert(kMetadataSizeAt + 8 == SocketTransfer::kHeaderSize);

// No store is larger: sums of two sizes cannot overflow.
constexpr uint64_t kLargestObject = uint64_t{1} << 48;

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

bool Interrupted() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Before it listens or connects: the window is settled with the connection. A size that may not be
// forced is left to the kernel, whose own choice grows beyond what others may ask for.
void Tune(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int size = SocketTransfer::kTunedBuffer;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
}

base::ObjectId LoadId(const uint8_t* bytes) {
  std::array<uint8_t, base::ObjectId::kSize> id{};
  std::memcpy(id.data(), bytes, id.size());
  return base::ObjectId(id);
}

Request EncodeRequest(const base::ObjectId& id) {
  Request request{};
  base::StoreLittle<uint32_t>(request.data(), SocketTransfer::kRequestMagic);
  std::memcpy(request.data() + 4, id.data(), base::ObjectId::kSize);
  return request;
}

Header EncodeHeader(const base::ObjectId& id, const absl::StatusOr<store::Location>& place) {
  Header header{};
  base::StoreLittle<uint32_t>(header.data(), SocketTransfer::kHeaderMagic);
  base::StoreLittle<uint32_t>(header.data() + kStatusAt, static_cast<uint32_t>(place.status().code()));
  std::memcpy(header.data() + kIdAt, id.data(), base::ObjectId::kSize);
  if (!place.ok()) return header;
  base::StoreLittle<uint64_t>(header.data() + kGenerationAt, static_cast<uint64_t>(place->generation));
  base::StoreLittle<uint64_t>(header.data() + kDataSizeAt, place->data_size);
  base::StoreLittle<uint64_t>(header.data() + kMetadataSizeAt, place->metadata_size);
  return header;
}

}  // namespace

// ---- who holds

class SocketTransfer::Asker final {
 public:
  Asker(SocketTransfer& owner, os::FileDescriptor socket) : owner_(owner), socket_(std::move(socket)) {
    watch_ = owner_.loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t events) { OnEvents(events); });
  }
  ~Asker() { Unpin(); }

  bool ended() const { return ended_; }

 private:
  void OnEvents(uint32_t events) {
    bool well = (events & EPOLLERR) == 0;
    if (well && (events & (EPOLLIN | EPOLLHUP)) != 0) well = ReadRequests();
    // The original answers when the loop says that the socket takes more.
    const bool send = (events & EPOLLOUT) != 0 || owner_.variant_ == SocketVariant::kTuned;
    if (well && send) well = Send();
    if (!well) return End();
    watch_.SetEvents((asked_.size() < kMaxRequests ? EPOLLIN : 0u) | (busy() ? EPOLLOUT : 0u));
  }

  bool busy() const { return sending_ || !asked_.empty(); }

  bool ReadRequests() {
    while (asked_.size() < kMaxRequests) {
      const ssize_t got = recv(socket_.get(), request_.data() + read_, request_.size() - read_, MSG_DONTWAIT);
      if (got < 0) return Interrupted();
      if (got == 0) return false;
      read_ += static_cast<size_t>(got);
      if (read_ < request_.size()) continue;
      read_ = 0;
      if (base::LoadLittle<uint32_t>(request_.data()) != kRequestMagic) {
        LOG(WARNING) << "a stream that begins with no request was closed";
        return false;
      }
      asked_.push_back(LoadId(request_.data() + 4));
    }
    return true;
  }

  // False: the stream is broken.
  bool Send() {
    const bool original = owner_.variant_ == SocketVariant::kOriginal;
    size_t turn = original ? kOriginalChunk : kTunedTurn;
    while (turn > 0 && busy()) {
      if (!sending_) BeginNext();
      const ssize_t put = original ? SendChunk() : SendMuch(turn);
      if (put < 0) return Interrupted();
      sent_ += static_cast<size_t>(put);
      turn = original ? 0 : turn - std::min(turn, static_cast<size_t>(put));
      if (sent_ == kHeaderSize + body_.size()) {
        Unpin();
        sending_ = false;
      }
    }
    return true;
  }

  void BeginNext() {
    id_ = asked_.front();
    asked_.pop_front();
    const absl::StatusOr<store::Location> place = owner_.store_.Acquire(id_, owner_.self_);
    pinned_ = place.ok();
    header_ = EncodeHeader(id_, place);
    body_ = place.ok() ? owner_.store_.Bytes(*place) : absl::Span<const uint8_t>();
    sent_ = 0;
    sending_ = true;
  }

  // The header by itself, and then a chunk.
  ssize_t SendChunk() {
    if (sent_ < kHeaderSize) return Put(header_.data() + sent_, kHeaderSize - sent_);
    const size_t at = sent_ - kHeaderSize;
    return Put(body_.data() + at, std::min(kOriginalChunk, body_.size() - at));
  }

  ssize_t Put(const uint8_t* from, size_t size) { return send(socket_.get(), from, size, MSG_DONTWAIT | MSG_NOSIGNAL); }

  ssize_t SendMuch(size_t turn) {
    std::array<iovec, 2> parts{};
    size_t count = 0;
    if (sent_ < kHeaderSize) parts[count++] = {header_.data() + sent_, kHeaderSize - sent_};
    const size_t at = sent_ < kHeaderSize ? 0 : sent_ - kHeaderSize;
    if (at < body_.size()) {
      parts[count++] = {const_cast<uint8_t*>(body_.data()) + at, std::min(turn, body_.size() - at)};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    return sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void Unpin() {
    if (std::exchange(pinned_, false)) CHECK(owner_.store_.Release(id_, owner_.self_).ok());
  }

  void End() {
    ended_ = true;
    watch_.Reset();
    socket_.Close();
    Unpin();
    owner_.ForgetEnded();
  }

  SocketTransfer& owner_;
  os::FileDescriptor socket_;
  Request request_{};
  size_t read_ = 0;  // of request_
  std::deque<base::ObjectId> asked_;
  bool sending_ = false;
  bool pinned_ = false;
  base::ObjectId id_;
  Header header_{};
  absl::Span<const uint8_t> body_;
  size_t sent_ = 0;  // of header and body
  bool ended_ = false;
  os::FdWatch watch_;
};

// ---- who pulls

class SocketTransfer::Wanted final : public base::Handle {
 public:
  Wanted(SocketTransfer& owner, const base::ObjectId& id, store::Owner who, Callback done)
      : id_(id), who_(who), owner_(owner), over_(owner.lifetime_.Watched()), done_(std::move(done)) {}
  ~Wanted() override;

  // On the stream's queue from now on.
  void Wait(Stream& stream, base::Duration timeout);

  // Off the queue; the callback runs soon.
  void Answer(absl::StatusOr<store::Location> result) {
    stream_ = nullptr;
    result_ = std::move(result);
    answered_ = true;
    timer_ = owner_.loop_.Post([this] { Deliver(); });
  }

  // The stream is gone without a word.
  void Orphan() {
    stream_ = nullptr;
    timer_.Cancel();
  }

  const base::ObjectId& id() const { return id_; }
  store::Owner who() const { return who_; }

 private:
  void Deliver() {
    if (over_.over()) return;
    answered_ = false;  // the pin is the asker's now
    const Callback done = std::move(done_);
    const absl::StatusOr<store::Location> result = std::move(result_);
    done(result);  // may drop this
  }

  const base::ObjectId id_;
  const store::Owner who_;
  SocketTransfer& owner_;
  const base::Lifetime::Watch over_;
  Callback done_;
  Stream* stream_ = nullptr;
  absl::StatusOr<store::Location> result_ = absl::UnknownError("");
  bool answered_ = false;  // and not told yet
  base::Timer timer_;      // the deadline, then the answer
};

class SocketTransfer::Stream final {
 public:
  Stream(SocketTransfer& owner, const verbs::Address& peer) : owner_(owner), peer_(peer) {}
  ~Stream() {
    AbandonBody();
    for (Wanted* const wanted : waiting_) wanted->Orphan();
  }

  absl::Status Connect() {
    const verbs::ibv::SocketAddress to = verbs::ibv::ToSocketAddress(peer_);
    socket_ = os::FileDescriptor(socket(to.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid()) return SystemError("no socket");
    if (owner_.variant_ == SocketVariant::kTuned) Tune(socket_.get());
    if (connect(socket_.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) {
      return SystemError(absl::StrCat("cannot connect to ", peer_.ToString()));
    }
    watch_ = owner_.loop_.Watch(socket_.get(), EPOLLIN | EPOLLOUT, [this](uint32_t events) { OnEvents(events); });
    return absl::OkStatus();
  }

  bool ended() const { return ended_; }
  bool full() const { return waiting_.size() >= kMaxRequests; }

  void Ask(Wanted& wanted) {
    waiting_.push_back(&wanted);
    const Request request = EncodeRequest(wanted.id());
    requests_.insert(requests_.end(), request.begin(), request.end());
    if (connected_ && !SendRequests()) return End(SystemError(Name()));
    WatchWhatIsNeeded();
  }

  void Drop(Wanted& wanted) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &wanted));
    End(absl::AbortedError("another pull on this stream was dropped"));
  }

  // Everything that waits is told `why`.
  void End(const absl::Status& why) {
    ended_ = true;
    watch_.Reset();
    socket_.Close();
    AbandonBody();
    const std::deque<Wanted*> waiting = std::exchange(waiting_, {});
    for (Wanted* const wanted : waiting) wanted->Answer(why);
    owner_.ForgetEnded();
  }

 private:
  std::string Name() const { return absl::StrCat("the stream to ", peer_.ToString()); }

  void OnEvents(uint32_t events) {
    if (!connected_ && !FinishConnect()) return;
    if ((events & EPOLLOUT) != 0 && !SendRequests()) return End(SystemError(Name()));
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
      if (const absl::Status status = Receive(); !status.ok()) return End(status);
    }
    WatchWhatIsNeeded();
  }

  bool FinishConnect() {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    connected_ = error == 0;
    if (!connected_) {
      End(absl::UnavailableError(absl::StrCat("cannot connect to ", peer_.ToString(), ": ", strerror(error))));
    }
    return connected_;
  }

  void WatchWhatIsNeeded() { watch_.SetEvents(EPOLLIN | (connected_ && requests_.empty() ? 0u : EPOLLOUT)); }

  bool SendRequests() {
    while (!requests_.empty()) {
      const ssize_t put = send(socket_.get(), requests_.data(), requests_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put < 0) return Interrupted();
      requests_.erase(requests_.begin(), requests_.begin() + put);
    }
    return true;
  }

  absl::Status Receive() {
    const bool original = owner_.variant_ == SocketVariant::kOriginal;
    size_t turn = original ? kOriginalChunk : kTunedTurn;
    while (turn > 0) {
      const bool header = read_ < kHeaderSize;
      uint8_t* const to = header ? header_.data() + read_ : body_.data() + (read_ - kHeaderSize);
      const size_t missing = header ? kHeaderSize - read_ : body_.size() - (read_ - kHeaderSize);
      const ssize_t got = recv(socket_.get(), to, std::min(missing, turn), MSG_DONTWAIT);
      if (got < 0) return Interrupted() ? absl::OkStatus() : SystemError(Name());
      if (got == 0) return absl::UnavailableError(absl::StrCat(Name(), " was closed by the peer"));
      read_ += static_cast<size_t>(got);
      turn = original ? 0 : turn - static_cast<size_t>(got);
      if (header && read_ == kHeaderSize) {
        if (absl::Status status = BeginBody(); !status.ok()) return status;
      }
      if (read_ == kHeaderSize + body_.size()) {
        if (absl::Status status = EndBody(); !status.ok()) return status;
        if (waiting_.empty()) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  // A header is whole: the first that waits is answered.
  absl::Status BeginBody() {
    const auto malformed = [this](const char* what) {
      return absl::InvalidArgumentError(absl::StrCat(Name(), " carries ", what, ": is that a node of this benchmark?"));
    };
    if (base::LoadLittle<uint32_t>(header_.data()) != kHeaderMagic) return malformed("something that is no header");
    if (waiting_.empty()) return malformed("an answer that nobody asked for");
    const base::ObjectId id = LoadId(header_.data() + kIdAt);
    if (id != waiting_.front()->id()) return malformed("another object than was asked for");
    const auto code = base::LoadLittle<uint32_t>(header_.data() + kStatusAt);
    if (code != 0) {
      if (code != static_cast<uint32_t>(absl::StatusCode::kNotFound)) return malformed("an unknown status");
      missing_ = true;
      return absl::OkStatus();
    }
    const base::Generation generation{base::LoadLittle<uint64_t>(header_.data() + kGenerationAt)};
    const auto data = base::LoadLittle<uint64_t>(header_.data() + kDataSizeAt);
    const auto metadata = base::LoadLittle<uint64_t>(header_.data() + kMetadataSizeAt);
    if (generation == base::kNoGeneration || data > kLargestObject || metadata > kLargestObject) {
      return malformed("a header with impossible sizes");
    }
    const auto place = owner_.store_.CreateCopy({id, generation}, data, metadata, owner_.self_);
    if (!place.ok()) return place.status();
    filling_ = true;
    body_ = owner_.store_.Memory(*place);
    return absl::OkStatus();
  }

  absl::Status EndBody() {
    Wanted& wanted = *waiting_.front();
    read_ = 0;
    body_ = {};
    if (std::exchange(missing_, false)) {
      waiting_.pop_front();
      wanted.Answer(absl::NotFoundError(absl::StrCat(peer_.ToString(), " does not hold ", wanted.id().ToHex())));
      return absl::OkStatus();
    }
    filling_ = false;
    if (absl::Status status = owner_.store_.Seal(wanted.id(), owner_.self_); !status.ok()) return status;
    waiting_.pop_front();
    wanted.Answer(owner_.store_.Acquire(wanted.id(), wanted.who()));
    return absl::OkStatus();
  }

  void AbandonBody() {
    body_ = {};
    if (std::exchange(filling_, false)) {
      CHECK(owner_.store_.Abort(LoadId(header_.data() + kIdAt), owner_.self_).ok());
    }
  }

  SocketTransfer& owner_;
  const verbs::Address peer_;
  os::FileDescriptor socket_;
  bool connected_ = false;
  bool ended_ = false;
  std::vector<uint8_t> requests_;  // not sent yet
  std::deque<Wanted*> waiting_;    // in the order asked, which is that of the answers
  Header header_{};
  size_t read_ = 0;       // of header and body
  bool missing_ = false;  // the header says so
  bool filling_ = false;  // an object of ours that is not sealed yet
  absl::Span<uint8_t> body_;
  os::FdWatch watch_;
};

void SocketTransfer::Wanted::Wait(Stream& stream, base::Duration timeout) {
  stream_ = &stream;
  timer_ = owner_.loop_.RunAfter(
      timeout, [this] { stream_->End(absl::DeadlineExceededError("an object did not come in time over a socket")); });
  stream.Ask(*this);
}

SocketTransfer::Wanted::~Wanted() {
  if (over_.over()) return;
  timer_.Cancel();
  if (stream_ != nullptr) stream_->Drop(*this);
  if (answered_ && result_.ok()) CHECK(owner_.store_.Release(id_, who_).ok());
}

// ---- both

absl::StatusOr<std::unique_ptr<SocketTransfer>> SocketTransfer::Listen(os::EpollLoop& loop, store::Store& store,
                                                                       const verbs::Address& ip,
                                                                       SocketVariant variant) {
  verbs::Address any = ip;
  any.port = 0;
  verbs::ibv::SocketAddress at = verbs::ibv::ToSocketAddress(any);
  os::FileDescriptor listener(socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return SystemError("no socket");
  if (variant == SocketVariant::kTuned) Tune(listener.get());
  at.size = ip.is_ipv4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (bind(listener.get(), at.get(), at.size) != 0 || listen(listener.get(), SOMAXCONN) != 0 ||
      getsockname(listener.get(), at.get(), &at.size) != 0) {
    return SystemError(absl::StrCat("cannot listen at ", any.ToString()));
  }
  const auto address = verbs::ibv::FromSocketAddress(at.get());
  CHECK(address.has_value());
  return std::unique_ptr<SocketTransfer>(new SocketTransfer(loop, store, variant, std::move(listener), *address));
}

SocketTransfer::SocketTransfer(os::EpollLoop& loop, store::Store& store, SocketVariant variant,
                               os::FileDescriptor listener, const verbs::Address& address)
    : loop_(loop),
      store_(store),
      variant_(variant),
      self_(store.NewOwner()),
      listener_(std::move(listener)),
      address_(address) {
  watch_ = loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
}

SocketTransfer::~SocketTransfer() = default;

void SocketTransfer::Accept() {
  os::FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return;
  if (askers_.size() >= kMaxStreams) {
    LOG(WARNING) << "a stream was refused: " << kMaxStreams << " are open";
    return;
  }
  if (variant_ == SocketVariant::kTuned) Tune(socket.get());
  askers_.emplace(next_asker_++, std::make_unique<Asker>(*this, std::move(socket)));
}

base::Pending SocketTransfer::Pull(const verbs::Address& from, const base::ObjectId& id, store::Owner who,
                                   base::Duration timeout, Callback done) {
  auto wanted = std::make_unique<Wanted>(*this, id, who, std::move(done));
  std::unique_ptr<Stream>& stream = streams_[from];
  if (stream == nullptr || stream->ended()) {
    stream = std::make_unique<Stream>(*this, from);
    if (absl::Status status = stream->Connect(); !status.ok()) {
      stream->End(status);
      wanted->Answer(status);
      return wanted;
    }
  }
  if (stream->full()) {
    wanted->Answer(absl::ResourceExhaustedError(absl::StrCat(kMaxRequests, " pulls wait for ", from.ToString())));
    return wanted;
  }
  wanted->Wait(*stream, timeout);
  return wanted;
}

// In a task of its own: they end in the middle of their work.
void SocketTransfer::ForgetEnded() {
  if (forget_.armed()) return;
  forget_ = loop_.Post([this] {
    for (auto it = askers_.begin(); it != askers_.end();) it = it->second->ended() ? askers_.erase(it) : std::next(it);
    for (auto it = streams_.begin(); it != streams_.end();) {
      it = it->second->ended() ? streams_.erase(it) : std::next(it);
    }
  });
}

}  // namespace tokamak::bench
