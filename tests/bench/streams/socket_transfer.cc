#include "tests/bench/streams/socket_transfer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::bench {

namespace {

using Header = std::array<uint8_t, SocketTransfer::kHeaderSize>;
using Request = std::array<uint8_t, SocketTransfer::kRequestSize>;

// Offsets of the fields of a header.
constexpr size_t kStatusAt = 4;
constexpr size_t kIdAt = 8;
constexpr size_t kGenerationAt = kIdAt + base::ObjectId::kSize;
constexpr size_t kDataSizeAt = kGenerationAt + 8;
constexpr size_t kMetadataSizeAt = kDataSizeAt + 8;
static_assert(kMetadataSizeAt + 8 == SocketTransfer::kHeaderSize);

// No store is larger: sums of two sizes cannot overflow.
constexpr uint64_t kLargestObject = uint64_t{1} << 48;

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
  Asker(SocketTransfer& owner, std::unique_ptr<ByteStream> stream) : owner_(owner), stream_(std::move(stream)) {
    stream_->Start([this](ByteStream::Readiness ready) { OnReady(ready); });
    stream_->Want({/*receive=*/true, /*send=*/false});
  }
  ~Asker() { Unpin(); }

  bool ended() const { return ended_; }

 private:
  void OnReady(ByteStream::Readiness ready) {
    bool well = !ready.receive || ReadRequests();
    // The original answers when the loop says that the socket takes more.
    const bool send = ready.send || owner_.variant_ == SocketVariant::kTuned;
    if (well && send) well = Send();
    if (!well) return End();
    stream_->Want({asked_.size() < kMaxRequests, busy()});
  }

  bool busy() const { return sending_ || !asked_.empty(); }

  bool ReadRequests() {
    while (asked_.size() < kMaxRequests) {
      const absl::StatusOr<size_t> got = stream_->Receive(absl::MakeSpan(request_).subspan(read_));
      if (!got.ok()) return false;
      if (*got == 0) return true;
      read_ += *got;
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
      const absl::StatusOr<size_t> put = original ? SendChunk() : SendMuch(turn);
      if (!put.ok()) return false;
      if (*put == 0) return true;
      sent_ += *put;
      turn = original ? 0 : turn - std::min(turn, *put);
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

  absl::Span<const uint8_t> header() const {
    return absl::MakeConstSpan(header_).subspan(std::min(sent_, kHeaderSize));
  }
  absl::Span<const uint8_t> body(size_t most) const {
    return body_.subspan(sent_ - std::min(sent_, kHeaderSize)).subspan(0, most);
  }

  // The header by itself, and then a chunk.
  absl::StatusOr<size_t> SendChunk() {
    const absl::Span<const uint8_t> part = header().empty() ? body(kOriginalChunk) : header();
    return stream_->Send({&part, 1});
  }

  absl::StatusOr<size_t> SendMuch(size_t turn) { return stream_->Send({header(), body(turn)}); }

  void Unpin() {
    if (std::exchange(pinned_, false)) CHECK(owner_.store_.Release(id_, owner_.self_).ok());
  }

  void End() {
    ended_ = true;
    stream_.reset();
    Unpin();
    owner_.ForgetEnded();
  }

  SocketTransfer& owner_;
  std::unique_ptr<ByteStream> stream_;
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
    auto stream = owner_.kind_->Connect(peer_, owner_.Tuning());
    if (!stream.ok()) return stream.status();
    stream_ = *std::move(stream);
    stream_->Start([this](ByteStream::Readiness ready) { OnReady(ready); });
    return absl::OkStatus();
  }

  bool ended() const { return ended_; }
  bool full() const { return waiting_.size() >= kMaxRequests; }

  void Ask(Wanted& wanted) {
    waiting_.push_back(&wanted);
    const Request request = EncodeRequest(wanted.id());
    requests_.insert(requests_.end(), request.begin(), request.end());
    if (const absl::Status status = SendRequests(); !status.ok()) return End(status);
    WantWhatIsNeeded();
  }

  void Drop(Wanted& wanted) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &wanted));
    End(absl::AbortedError("another pull on this stream was dropped"));
  }

  // Ends everything that waits with `why`.
  void End(const absl::Status& why) {
    ended_ = true;
    stream_.reset();
    AbandonBody();
    const std::deque<Wanted*> waiting = std::exchange(waiting_, {});
    for (Wanted* const wanted : waiting) wanted->Answer(why);
    owner_.ForgetEnded();
  }

 private:
  std::string Name() const { return absl::StrCat("the stream to ", peer_.ToString()); }

  void OnReady(ByteStream::Readiness ready) {
    if (ready.send) {
      if (const absl::Status status = SendRequests(); !status.ok()) return End(status);
    }
    if (ready.receive) {
      if (const absl::Status status = Receive(); !status.ok()) return End(status);
    }
    WantWhatIsNeeded();
  }

  void WantWhatIsNeeded() { stream_->Want({/*receive=*/true, !requests_.empty()}); }

  absl::Status SendRequests() {
    while (!requests_.empty()) {
      const absl::Span<const uint8_t> part = requests_;
      const absl::StatusOr<size_t> put = stream_->Send({&part, 1});
      if (!put.ok()) return put.status();
      if (*put == 0) return absl::OkStatus();
      requests_.erase(requests_.begin(), requests_.begin() + static_cast<ptrdiff_t>(*put));
    }
    return absl::OkStatus();
  }

  absl::Status Receive() {
    const bool original = owner_.variant_ == SocketVariant::kOriginal;
    size_t turn = original ? kOriginalChunk : kTunedTurn;
    while (turn > 0) {
      const bool header = read_ < kHeaderSize;
      uint8_t* const to = header ? header_.data() + read_ : body_.data() + (read_ - kHeaderSize);
      const size_t missing = header ? kHeaderSize - read_ : body_.size() - (read_ - kHeaderSize);
      const absl::StatusOr<size_t> got = stream_->Receive({to, std::min(missing, turn)});
      if (!got.ok()) return got.status();
      if (*got == 0) return absl::OkStatus();
      read_ += *got;
      turn = original ? 0 : turn - *got;
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
  std::unique_ptr<ByteStream> stream_;
  bool ended_ = false;
  std::vector<uint8_t> requests_;  // not sent yet
  std::deque<Wanted*> waiting_;    // in the order asked, which is that of the answers
  Header header_{};
  size_t read_ = 0;       // of header and body
  bool missing_ = false;  // the header says so
  bool filling_ = false;  // an object of ours that is not sealed yet
  absl::Span<uint8_t> body_;
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

absl::StatusOr<std::unique_ptr<SocketTransfer>> SocketTransfer::Listen(base::EventLoop& loop, store::Store& store,
                                                                       std::unique_ptr<ByteStreams> streams,
                                                                       SocketVariant variant) {
  std::unique_ptr<SocketTransfer> transfer(new SocketTransfer(loop, store, std::move(streams), variant));
  auto listener = transfer->kind_->Listen(
      transfer->Tuning(),
      [transfer = transfer.get()](std::unique_ptr<ByteStream> stream) { transfer->Accept(std::move(stream)); });
  if (!listener.ok()) return listener.status();
  transfer->listener_ = *std::move(listener);
  return transfer;
}

SocketTransfer::SocketTransfer(base::EventLoop& loop, store::Store& store, std::unique_ptr<ByteStreams> streams,
                               SocketVariant variant)
    : loop_(loop), store_(store), kind_(std::move(streams)), variant_(variant), self_(store.NewOwner()) {}

SocketTransfer::~SocketTransfer() = default;

StreamOptions SocketTransfer::Tuning() const {
  return variant_ == SocketVariant::kTuned ? StreamOptions{/*no_delay=*/true, kTunedBuffer} : StreamOptions();
}

void SocketTransfer::Accept(std::unique_ptr<ByteStream> stream) {
  if (askers_.size() >= kMaxStreams) {
    LOG(WARNING) << "a stream was refused: " << kMaxStreams << " are open";
    return;
  }
  askers_.emplace(next_asker_++, std::make_unique<Asker>(*this, std::move(stream)));
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
