#include "examples/checkpoint/saver.h"

#include <chrono>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "examples/deadline.h"
#include "examples/units.h"
#include "tokamak/gets.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {
namespace {

// A head is waited for this long, and then it is looked whether the run has another trainer, or
// none.
constexpr Seconds kLook = Seconds(0.2);
// Between two attempts where something is in the way that nothing tells the end of: an outage of
// the directory, or a trainer's node that is gone and whose head is still known.
constexpr std::chrono::milliseconds kRetryDelay(100);

absl::string_view Text(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data().data()), buffer.data().size()};
}

}  // namespace

Saver::Saver(Client& client, CheckpointFolder& folder, const SaverOptions& options)
    : client_(client), folder_(folder), options_(options) {}

Status Saver::Run() {
  Deadline idle = Deadline::After(options_.idle);
  while (!idle.passed()) {
    const Deadline soon = Deadline::After(kLook / 2);
    const auto found = Look();
    if (!found.ok()) return found.status();
    if (!found->has_value()) {
      if (over_) return Status();
      if (!soon.passed()) std::this_thread::sleep_for(kRetryDelay);  // it did not wait: something is in the way
      continue;
    }
    const Manifest& manifest = (*found)->manifest;
    if (!Has(manifest)) {
      if (Status s = Check(manifest); !s.ok()) return s;
      const Status saved = Save(**found);
      if (saved.code() == StatusCode::kAborted && client_.status().ok()) {  // the trainer is gone, or its node
        std::this_thread::sleep_for(kRetryDelay);
        continue;
      }
      if (!saved.ok()) return saved;
    }
    if (Status s = TellSaved(**found); !s.ok()) return s;
    idle = Deadline::After(options_.idle);
  }
  return Status(StatusCode::kDeadlineExceeded,
                absl::StrCat("no snapshot of run '", options_.run, "' came within ", FormatTime(options_.idle),
                             ": is `checkpoint train --run ", options_.run, "` running?"));
}

// Returns a head that was not announced to the trainer yet; nullopt if none came within kLook.
Result<std::optional<Saver::Found>> Saver::Look() {
  const std::optional<Found> nothing;
  const auto trouble = [&](const Status& status) -> Result<std::optional<Found>> {
    if (!client_.status().ok()) return client_.status();
    return status.code() == StatusCode::kInvalidArgument ? Result<std::optional<Found>>(status) : nothing;
  };
  Result<Session> session = Status(StatusCode::kNotFound, "");
  {
    const auto buffer = client_.Get(Session::NameOf(options_.run).id(), kLook);
    if (buffer.status().code() == StatusCode::kNotFound) {
      if (Status s = TakeBack(); !s.ok()) return trouble(s);
      over_ = told_.has_value() && told_->manifest.final;
    }
    if (!buffer.ok()) return trouble(buffer.status());
    session = Session::Parse(options_.run, Text(*buffer));
  }
  if (!session.ok()) return session.status();
  if (told_.has_value() && told_->session.life != session->life) {
    if (Status s = TakeBack(); !s.ok()) return trouble(s);
  }

  // The trainer deletes a head before it puts the next, which is in the other slot.
  std::vector<uint64_t> slots;
  for (uint64_t slot = 0; slot < Session::kSlots; ++slot) {
    const bool known =
        told_.has_value() && told_->session.life == session->life && Session::SlotOf(told_->manifest.number) == slot;
    if (!known) slots.push_back(slot);
  }
  std::vector<ObjectId> heads;
  for (const uint64_t slot : slots) heads.push_back(session->Head(slot).id());
  const auto there = client_.Wait(heads, 1, kLook);
  if (!there.ok()) return trouble(there.status());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!(*there)[i]) continue;
    const auto buffer = client_.Get(heads[i], options_.piece_timeout);
    if (!buffer.ok()) return trouble(buffer.status());
    const auto manifest = Manifest::Parse(Text(*buffer), session->Head(slots[i]).text());
    if (!manifest.ok()) return manifest.status();
    if (manifest->run != options_.run || manifest->life != session->life || manifest->pieces() != session->pieces ||
        Session::SlotOf(manifest->number) != slots[i]) {
      return Status(StatusCode::kInvalidArgument, absl::StrCat(session->Head(slots[i]).text(), " is of another run"));
    }
    Tell(absl::StrCat("found ", manifest->step));
    return std::optional<Found>(Found{*session, *manifest});
  }
  return nothing;
}

bool Saver::Has(const Manifest& manifest) const {
  const auto& newest = folder_.newest();
  return newest.has_value() && newest->life == manifest.life && newest->number >= manifest.number;
}

// A run that was begun anew by mistake must not take the place of what was learned.
Status Saver::Check(const Manifest& manifest) const {
  const auto& newest = folder_.newest();
  if (!newest.has_value() || newest->life == manifest.life || manifest.resumed) return Status();
  return Status(
      StatusCode::kFailedPrecondition,
      absl::StrCat("--folder has a checkpoint of step ", newest->step, " of run '", options_.run,
                   "', which the trainer did not begin from: give it ", "--resume, or give an empty --folder"));
}

Status Saver::Save(const Found& found) {
  const Manifest& manifest = found.manifest;
  auto writer = folder_.Begin(manifest.bytes, manifest.piece_bytes);
  if (!writer.ok()) return writer.status();
  if (Status s = PullInto(found, *writer); !s.ok()) return s;
  if (Status s = writer->Commit(manifest); !s.ok()) return s;
  ++saved_;
  bytes_ += manifest.bytes;
  return Status();
}

// kAborted: a piece is not to be had, so that this snapshot will never be whole.
Status Saver::PullInto(const Found& found, CheckpointFolder::Writer& writer) {
  const Manifest& manifest = found.manifest;
  const uint64_t slot = Session::SlotOf(manifest.number);
  Gets gets(client_);
  std::unordered_map<uint64_t, uint64_t> pieces;  // by the number of the get
  uint64_t next = 0;
  while (next < manifest.pieces() || gets.pending() > 0) {
    while (next < manifest.pieces() && gets.pending() < options_.pieces_under_way) {
      const auto begun = gets.Begin(found.session.Piece(slot, next).id(), options_.piece_timeout);
      if (!begun.ok()) return begun.status();
      pieces[*begun] = next++;
    }
    auto answer = gets.Next(options_.piece_timeout + options_.piece_timeout);
    if (!answer.ok())
      return client_.status().ok() ? Status(StatusCode::kAborted, answer.status().message()) : client_.status();
    const uint64_t piece = pieces[answer->number];
    const std::string name = found.session.Piece(slot, piece).text();
    if (!answer->buffer.ok()) {
      if (!client_.status().ok()) return client_.status();
      return Status(StatusCode::kAborted, absl::StrCat(name, ": ", answer->buffer.status().message()));
    }
    const Span<const uint8_t> bytes = answer->buffer->data();
    if (bytes.size() != manifest.PieceSize(piece) || HashOfPiece(bytes) != manifest.hashes[piece]) {
      return Status(StatusCode::kDataLoss, absl::StrCat(name, " is not what the trainer's manifest says"));
    }
    if (Status s = writer.Write(piece, bytes); !s.ok()) return s;
    answer->buffer->Release();
    Tell(absl::StrCat("piece ", manifest.step, " ", piece));
  }
  return Status();
}

Status Saver::TellSaved(const Found& found) {
  const ObjectName name = found.session.Saved(Session::SlotOf(found.manifest.number));
  const Status put = client_.Put(name.id(), {}, {}, name.options());
  if (!put.ok() && put.code() != StatusCode::kAlreadyExists) return put;
  told_ = found;
  taken_back_ = false;
  Tell(absl::StrCat("told ", found.manifest.step));
  return Status();
}

// If the trainer heard of it after the next trainer had deleted everything of this one, nobody else
// deletes the object.
Status Saver::TakeBack() {
  if (!told_.has_value() || taken_back_) return Status();
  const Status status = client_.Delete(told_->session.Saved(Session::SlotOf(told_->manifest.number)).id());
  if (!status.ok() && status.code() != StatusCode::kNotFound) return status;
  taken_back_ = true;
  return Status();
}

void Saver::Tell(const std::string& moment) const {
  if (options_.on_moment != nullptr) options_.on_moment(moment);
}

}  // namespace tokamak::example
