#include "examples/checkpoint/snapshots.h"

#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/client/deadline.h"
#include "lib/client/gets.h"

namespace tokamak::example {
namespace {

using client::Deadline;

// Between two attempts at what another node's outage is in the way of.
constexpr base::Duration kRetryDelay = base::Milliseconds(200);
// Between two looks at whether the thread is to end, and the run is still ours.
constexpr base::Duration kLook = base::Milliseconds(500);
// The daemon ends a get after this; it is begun again.
constexpr base::Duration kSavedTimeout = base::Seconds(60);

std::chrono::nanoseconds Chrono(base::Duration duration) { return std::chrono::nanoseconds(duration.nanoseconds()); }

absl::Span<const uint8_t> Bytes(const std::string& text) {
  return absl::MakeSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

absl::string_view Text(const client::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data().data()), buffer.data().size()};
}

uint64_t DrawLife() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

absl::Status With(absl::string_view what, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Snapshots>> Snapshots::Begin(client::Client& client, const SnapshotOptions& options) {
  const auto pieces = CountPieces(options.state_bytes, options.piece_bytes);
  if (!pieces.ok()) return pieces.status();
  std::unique_ptr<Snapshots> made(new Snapshots(client, options, DrawLife(), *pieces));
  if (absl::Status s = made->TakeOver(); !s.ok()) return s;
  made->thread_ = std::thread([snapshots = made.get()] { snapshots->Work(); });
  if (absl::Status s = made->AwaitState(State::kReady, options.deadline); !s.ok()) return s;
  return made;
}

Snapshots::Snapshots(client::Client& client, const SnapshotOptions& options, uint64_t life, uint64_t pieces)
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

absl::Status Snapshots::TakeOver() {
  const ObjectName name = Session::NameOf(options_.run);
  const std::string content = session_.ToJson();
  client::PutOptions put;
  put.confirmed = true;
  const Deadline deadline = Deadline::After(options_.deadline);
  for (;;) {
    absl::Status status = client_.Put(name.id(), Bytes(content), name.metadata(), put);
    if (status.ok()) return status;
    const bool held = absl::IsAlreadyExists(status);
    if (held) status = DeleteEarlier();
    if (held && status.ok()) continue;
    if (absl::IsInvalidArgument(status) || !client_.status().ok() || deadline.passed() || !Pause()) {
      return With(absl::StrCat("cannot take over run '", options_.run, "'"), status);
    }
  }
}

// What the trainer left that had the run before. Its session last: until then it can be found.
absl::Status Snapshots::DeleteEarlier() {
  const ObjectName name = Session::NameOf(options_.run);
  absl::StatusOr<Session> earlier = absl::NotFoundError("");
  {
    const auto buffer = client_.Get(name.id(), kRetryDelay);
    if (absl::IsNotFound(buffer.status())) return absl::UnavailableError("its session is held where it cannot be read");
    if (!buffer.ok()) return buffer.status();
    earlier = Session::Parse(options_.run, Text(*buffer));
  }
  if (!earlier.ok()) return earlier.status();
  for (uint64_t slot = 0; slot < Session::kSlots; ++slot) {
    if (absl::Status s = DeleteSlot(*earlier, slot); !s.ok()) return s;
  }
  return Delete(name.id());
}

// That it is not there is as good.
absl::Status Snapshots::Delete(const base::ObjectId& id) {
  const absl::Status status = client_.Delete(id);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

// The head first: what it names is then on its way to nobody new.
absl::Status Snapshots::DeleteSlot(const Session& session, uint64_t slot) {
  if (absl::Status s = Delete(session.Head(slot).id()); !s.ok()) return s;
  for (uint64_t piece = 0; piece < session.pieces; ++piece) {
    if (absl::Status s = Delete(session.Piece(slot, piece).id()); !s.ok()) return s;
  }
  return Delete(session.Saved(slot).id());
}

// The session is on this node, as we put it, unless somebody has deleted it. Where that cannot be
// said now, it is asked again.
absl::Status Snapshots::StillOurs() {
  const base::ObjectId id = Session::NameOf(options_.run).id();
  const auto here = client_.Contains(id);
  if (!here.ok()) return client_.status();
  if (*here) {
    const auto buffer = client_.Get(id, base::Duration());
    if (!buffer.ok()) return client_.status();
    const auto session = Session::Parse(options_.run, Text(*buffer));
    if (session.ok() && session->life == session_.life) return absl::OkStatus();
  }
  for (uint64_t slot = 0; slot < Session::kSlots; ++slot) DeleteSlot(session_, slot).IgnoreError();
  return absl::AbortedError(absl::StrCat("another trainer has taken over run '", options_.run, "'"));
}

// False: the thread is to end.
bool Snapshots::Pause() {
  std::unique_lock<std::mutex> lock(mutex_);
  return !changed_.wait_for(lock, Chrono(kRetryDelay), [&] { return stop_; });
}

// ---- the loop

bool Snapshots::ready() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_ == State::kReady;
}

absl::Status Snapshots::status() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::Status Snapshots::Take(uint64_t step, absl::Span<const uint8_t> state, bool final) {
  if (state.size() != options_.state_bytes) return absl::InvalidArgumentError("the state has changed its size");
  if (absl::Status s = AwaitState(State::kReady, options_.deadline); !s.ok()) return s;
  for (uint64_t piece = 0; piece < session_.pieces; ++piece) {
    std::memcpy(pieces_[piece].data().data(), state.data() + manifest_.PieceBegin(piece), pieces_[piece].data().size());
  }
  manifest_.step = step;
  manifest_.final = final;
  Tell(absl::StrCat("copied ", step));
  Enter(State::kTaken);
  return absl::OkStatus();
}

absl::Status Snapshots::Finish() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != State::kTaken) stop_ = true;  // nothing is under way
  }
  changed_.notify_all();
  if (absl::Status s = AwaitState(State::kEnded, options_.deadline); !s.ok()) return s;
  thread_.join();
  if (absl::Status s = status(); !s.ok()) return s;
  if (absl::Status s = Delete(Session::NameOf(options_.run).id()); !s.ok()) return s;
  Tell("finished");
  return absl::OkStatus();
}

absl::Status Snapshots::AwaitState(State state, base::Duration deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto there = [&] { return state_ == state || state_ == State::kEnded; };
  if (!changed_.wait_for(lock, Chrono(deadline), there)) {
    if (state_ == State::kPreparing) {
      return absl::DeadlineExceededError(absl::StrCat("no room for a snapshot within ", base::FormatDuration(deadline),
                                                      ", or a node that holds the last one cannot be asked"));
    }
    return absl::DeadlineExceededError(absl::StrCat("the snapshot of step ", manifest_.step, " was not saved within ",
                                                    base::FormatDuration(deadline), ": is `checkpoint save --run ",
                                                    options_.run, "` running? It stays in the store for it"));
  }
  if (state_ == state) return absl::OkStatus();
  return status_.ok() ? absl::FailedPreconditionError("nothing is taken after the final one") : status_;
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
  const absl::Status status = OneAfterTheOther();
  pieces_.clear();  // what is not sealed is aborted
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = status;
  }
  Enter(State::kEnded);
}

absl::Status Snapshots::OneAfterTheOther() {
  for (;;) {
    if (absl::Status s = Prepare(); !s.ok()) return With("cannot make room for a snapshot", s);
    if (!AwaitTaken()) return absl::OkStatus();
    const std::string what = absl::StrCat("the snapshot of step ", manifest_.step);
    if (absl::Status s = StillOurs(); !s.ok()) return With(what, s);
    if (absl::Status s = Publish(); !s.ok()) return With(what, s);
    if (absl::Status s = AwaitSaved(); !s.ok()) return With(what, s);
    Tell(absl::StrCat("saved ", manifest_.step));
    // While a node cannot be asked, its copies keep their ids: the slot is not free.
    absl::Status status;
    do {
      status = DeleteSlot(session_, Session::SlotOf(manifest_.number));
    } while (absl::IsUnavailable(status) && client_.status().ok() && Pause());
    if (!status.ok()) return With(what, status);
    Tell(absl::StrCat("deleted ", manifest_.step));
    if (manifest_.final) return absl::OkStatus();
    ++manifest_.number;
    Enter(State::kPreparing);
  }
}

absl::Status Snapshots::Prepare() {
  const uint64_t slot = Session::SlotOf(manifest_.number);
  manifest_.hashes.assign(session_.pieces, 0);
  client::PutOptions put;
  put.timeout = options_.deadline;
  for (uint64_t piece = 0; piece < session_.pieces; ++piece) {
    const ObjectName name = session_.Piece(slot, piece);
    auto buffer = client_.Create(name.id(), manifest_.PieceSize(piece), name.metadata(), put);
    if (!buffer.ok()) return buffer.status();
    pieces_.push_back(*std::move(buffer));
  }
  return absl::OkStatus();
}

// False: there will be no further one.
bool Snapshots::AwaitTaken() {
  Enter(State::kReady);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return state_ == State::kTaken || stop_; });
  return state_ == State::kTaken;
}

// The head is put when everything that it names is sealed.
absl::Status Snapshots::Publish() {
  for (uint64_t piece = 0; piece < session_.pieces; ++piece) {
    manifest_.hashes[piece] = HashOfPiece(pieces_[piece].data());
    if (absl::Status s = pieces_[piece].Seal(); !s.ok()) return s;
    Tell(absl::StrCat("sealed ", manifest_.step, " ", piece));
  }
  pieces_.clear();
  const ObjectName head = session_.Head(Session::SlotOf(manifest_.number));
  const std::string content = manifest_.ToJson();
  if (absl::Status s = client_.Put(head.id(), Bytes(content), head.metadata()); !s.ok()) return s;
  Tell(absl::StrCat("head ", manifest_.step));
  return absl::OkStatus();
}

// The daemon waits for the saver's word; here it is only looked for.
absl::Status Snapshots::AwaitSaved() {
  const ObjectName saved = session_.Saved(Session::SlotOf(manifest_.number));
  client::Gets gets(client_);
  for (;;) {
    if (gets.pending() == 0) {
      if (const auto begun = gets.Begin(saved.id(), kSavedTimeout); !begun.ok()) return begun.status();
    }
    const auto answer = gets.Next(kLook);
    if (answer.ok() && answer->buffer.ok()) return absl::OkStatus();
    if (!client_.status().ok()) return client_.status();
    if (answer.ok()) Pause();  // the daemon could not wait: perhaps its directory is away
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return absl::CancelledError("the trainer ends");
    }
    if (absl::Status s = StillOurs(); !s.ok()) return s;
  }
}

}  // namespace tokamak::example
