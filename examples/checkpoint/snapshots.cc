#include "examples/checkpoint/snapshots.h"

#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "examples/deadline.h"
#include "examples/units.h"
#include "tokamak/gets.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {
namespace {

// Between two attempts at what another node's outage is in the way of.
constexpr Seconds kRetryRead = Seconds(0.2);
// Between two looks at whether the thread is to end, and the run is still ours.
constexpr Seconds kLookForParts = Seconds(0.5);
// The daemon ends a get after this; it is begun again.
constexpr Seconds kSavedTimeout = Seconds(60);

absl::string_view TextOf(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data().data()), buffer.data().size()};
}

uint64_t DrawLife() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

Status With(absl::string_view what, const Status& status) {
  return Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace

Result<std::unique_ptr<Snapshots>> Snapshots::Begin(Client& client, const SnapshotOptions& options) {
  const auto pieces = CountPieces(options.state_bytes, options.piece_bytes);
  if (!pieces.ok()) return pieces.status();
  std::unique_ptr<Snapshots> made(new Snapshots(client, options, DrawLife(), *pieces));
  if (Status s = made->TakeOver(); !s.ok()) return s;
  made->thread_ = std::thread([snapshots = made.get()] { snapshots->Work(); });
  if (Status s = made->AwaitState(State::kReady, options.deadline); !s.ok()) return s;
  return made;
}

Snapshots::Snapshots(Client& client, const SnapshotOptions& options, uint64_t life, uint64_t pieces)
    : client_(client), options_(options), session_{options.run, life, pieces} {
  manifest_.run = options.run;
  manifest_.life = life;
  manifest_.resumed = options.resumed;
  manifest_.bytes = options.state_bytes;
  manifest_.piece_bytes = options.piece_bytes;
}

Snapshots::~Snapshots() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// ---- the run

Status Snapshots::TakeOver() {
  const ObjectName name = Session::NameOf(options_.run);
  const std::string content = session_.ToJson();
  PutOptions put = name.options();
  put.confirmed = true;
  const Deadline deadline = Deadline::After(options_.deadline);
  for (;;) {
    Status status = client_.Put(name.id(), content, {}, put);
    if (status.ok()) return status;
    const bool held = status.code() == StatusCode::kAlreadyExists;
    if (held) status = DeleteEarlier();
    if (held && status.ok()) continue;
    if (status.code() == StatusCode::kInvalidArgument || !client_.status().ok() || deadline.passed() || !Pause()) {
      return With(absl::StrCat("cannot take over run '", options_.run, "'"), status);
    }
  }
}

// Deletes the objects of the trainer that had the run before, its session last: until then it can
// be found.
Status Snapshots::DeleteEarlier() {
  const ObjectName name = Session::NameOf(options_.run);
  Result<Session> earlier = Status(StatusCode::kNotFound, "");
  {
    const auto buffer = client_.Get(name.id(), kRetryRead);
    if (buffer.status().code() == StatusCode::kNotFound)
      return Status(StatusCode::kUnavailable, "its session is held where it cannot be read");
    if (!buffer.ok()) return buffer.status();
    earlier = Session::Parse(options_.run, TextOf(*buffer));
  }
  if (!earlier.ok()) return earlier.status();
  for (uint64_t slot = 0; slot < Session::kSlots; ++slot) {
    if (Status s = DeleteSlot(*earlier, slot); !s.ok()) return s;
  }
  return Delete(name.id());
}

// That it is not there is as good.
Status Snapshots::Delete(const ObjectId& id) {
  const Status status = client_.Delete(id);
  return status.code() == StatusCode::kNotFound ? Status() : status;
}

// The head first: what it names is then on its way to nobody new.
Status Snapshots::DeleteSlot(const Session& session, uint64_t slot) {
  if (Status s = Delete(session.Head(slot).id()); !s.ok()) return s;
  for (uint64_t piece = 0; piece < session.pieces; ++piece) {
    if (Status s = Delete(session.Piece(slot, piece).id()); !s.ok()) return s;
  }
  return Delete(session.Saved(slot).id());
}

// The session is on this node, as we put it, unless somebody has deleted it. If that cannot be
// known now, it is asked again.
Status Snapshots::StillOurs() {
  const ObjectId id = Session::NameOf(options_.run).id();
  const auto here = client_.Contains(id);
  if (!here.ok()) return client_.status();
  if (*here) {
    const auto buffer = client_.Get(id, Seconds(0));
    if (!buffer.ok()) return client_.status();
    const auto session = Session::Parse(options_.run, TextOf(*buffer));
    if (session.ok() && session->life == session_.life) return Status();
  }
  for (uint64_t slot = 0; slot < Session::kSlots; ++slot) DeleteSlot(session_, slot).IgnoreError();
  return Status(StatusCode::kAborted, absl::StrCat("another trainer has taken over run '", options_.run, "'"));
}

// False: the thread is to end.
bool Snapshots::Pause() {
  std::unique_lock<std::mutex> lock(mutex_);
  return !changed_.wait_for(lock, kRetryRead, [&] { return stop_; });
}

// ---- the loop

bool Snapshots::ready() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_ == State::kReady;
}

Status Snapshots::status() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

Status Snapshots::Take(uint64_t step, Span<const uint8_t> state, bool final) {
  if (state.size() != options_.state_bytes)
    return Status(StatusCode::kInvalidArgument, "the state has changed its size");
  if (Status s = AwaitState(State::kReady, options_.deadline); !s.ok()) return s;
  for (uint64_t piece = 0; piece < session_.pieces; ++piece) {
    std::memcpy(pieces_[piece].data().data(), state.data() + manifest_.PieceBegin(piece), pieces_[piece].data().size());
  }
  manifest_.step = step;
  manifest_.final = final;
  Tell(absl::StrCat("copied ", step));
  Enter(State::kTaken);
  return Status();
}

Status Snapshots::Finish() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != State::kTaken) stop_ = true;  // nothing is under way
  }
  changed_.notify_all();
  if (Status s = AwaitState(State::kEnded, options_.deadline); !s.ok()) return s;
  thread_.join();
  if (Status s = status(); !s.ok()) return s;
  if (Status s = Delete(Session::NameOf(options_.run).id()); !s.ok()) return s;
  Tell("finished");
  return Status();
}

Status Snapshots::AwaitState(State state, Seconds deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto there = [&] { return state_ == state || state_ == State::kEnded; };
  if (!changed_.wait_for(lock, deadline, there)) {
    if (state_ == State::kPreparing) {
      return Status(StatusCode::kDeadlineExceeded, absl::StrCat("no room for a snapshot within ", FormatTime(deadline),
                                                                ", or a node that holds the last one cannot be asked"));
    }
    return Status(
        StatusCode::kDeadlineExceeded,
        absl::StrCat("the snapshot of step ", manifest_.step, " was not saved within ", FormatTime(deadline),
                     ": is `checkpoint save --run ", options_.run, "` running? It stays in the store for it"));
  }
  if (state_ == state) return Status();
  return status_.ok() ? Status(StatusCode::kFailedPrecondition, "nothing is taken after the final one") : status_;
}

void Snapshots::Enter(State state) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_ = state;
  }
  changed_.notify_all();
}

void Snapshots::Tell(const std::string& moment) const {
  if (options_.on_moment != nullptr) options_.on_moment(moment);
}

// ---- the thread

void Snapshots::Work() {
  const Status status = OneAfterTheOther();
  pieces_.clear();  // what is not sealed is aborted
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = status;
  }
  Enter(State::kEnded);
}

Status Snapshots::OneAfterTheOther() {
  for (;;) {
    if (Status s = Prepare(); !s.ok()) return With("cannot make room for a snapshot", s);
    if (!AwaitTaken()) return Status();
    const std::string what = absl::StrCat("the snapshot of step ", manifest_.step);
    if (Status s = StillOurs(); !s.ok()) return With(what, s);
    if (Status s = Publish(); !s.ok()) return With(what, s);
    if (Status s = AwaitSaved(); !s.ok()) return With(what, s);
    Tell(absl::StrCat("saved ", manifest_.step));
    // While a node cannot be asked, its copies keep their ids: the slot is not free.
    Status status;
    do {
      status = DeleteSlot(session_, Session::SlotOf(manifest_.number));
    } while (status.code() == StatusCode::kUnavailable && client_.status().ok() && Pause());
    if (!status.ok()) return With(what, status);
    Tell(absl::StrCat("deleted ", manifest_.step));
    if (manifest_.final) return Status();
    ++manifest_.number;
    Enter(State::kPreparing);
  }
}

Status Snapshots::Prepare() {
  const uint64_t slot = Session::SlotOf(manifest_.number);
  manifest_.hashes.assign(session_.pieces, 0);
  for (uint64_t piece = 0; piece < session_.pieces; ++piece) {
    const ObjectName name = session_.Piece(slot, piece);
    PutOptions put = name.options();
    put.timeout = options_.deadline;
    auto buffer = client_.Create(name.id(), manifest_.PieceSize(piece), {}, put);
    if (!buffer.ok()) return buffer.status();
    pieces_.push_back(*std::move(buffer));
  }
  return Status();
}

// False: there will be no further one.
bool Snapshots::AwaitTaken() {
  Enter(State::kReady);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return state_ == State::kTaken || stop_; });
  return state_ == State::kTaken;
}

// The head is put when everything that it names is sealed.
Status Snapshots::Publish() {
  for (uint64_t piece = 0; piece < session_.pieces; ++piece) {
    manifest_.hashes[piece] = HashOfPiece(pieces_[piece].data());
    if (Status s = pieces_[piece].Seal(); !s.ok()) return s;
    Tell(absl::StrCat("sealed ", manifest_.step, " ", piece));
  }
  pieces_.clear();
  const ObjectName head = session_.Head(Session::SlotOf(manifest_.number));
  const std::string content = manifest_.ToJson();
  if (Status s = client_.Put(head.id(), content, {}, head.options()); !s.ok()) return s;
  Tell(absl::StrCat("head ", manifest_.step));
  return Status();
}

// The daemon waits for the saver's word; here it is only looked for.
Status Snapshots::AwaitSaved() {
  const ObjectName saved = session_.Saved(Session::SlotOf(manifest_.number));
  Gets gets(client_);
  for (;;) {
    if (gets.pending() == 0) {
      if (const auto begun = gets.Begin(saved.id(), kSavedTimeout); !begun.ok()) return begun.status();
    }
    const auto answer = gets.Next(kLookForParts);
    if (answer.ok() && answer->buffer.ok()) return Status();
    if (!client_.status().ok()) return client_.status();
    if (answer.ok()) Pause();  // the daemon could not wait: perhaps its directory is away
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return Status(StatusCode::kCancelled, "the trainer ends");
    }
    if (Status s = StillOurs(); !s.ok()) return s;
  }
}

}  // namespace tokamak::example
