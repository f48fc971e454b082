#include "tests/interop/rping_peer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"

namespace tokamak::interop {
namespace {

constexpr uint32_t kMessage = 16;

constexpr char kFirstLetter = 'A';
constexpr uint32_t kLetters = 'z' - 'A' + 1;  // all that lies between them, too

verbs::Sge Whole(verbs::MemoryRegion& region) {
  return {region.address(), static_cast<uint32_t>(region.length()), region.lkey()};
}

absl::Status Compare(absl::Span<const uint8_t> bytes, uint32_t ping) {
  const std::string expected = PingText(ping, static_cast<uint32_t>(bytes.size()));
  const auto differs = std::mismatch(bytes.begin(), bytes.end(), expected.begin(),
                                     [](uint8_t byte, char letter) { return byte == static_cast<uint8_t>(letter); });
  if (differs.first == bytes.end()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("ping ", ping, " of ", bytes.size(), " bytes: byte ",
                                          differs.first - bytes.begin(), " is ", int{*differs.first}, ", not ",
                                          int{static_cast<uint8_t>(*differs.second)}));
}

}  // namespace

std::string PingText(uint32_t ping, uint32_t size) {
  std::string text = absl::StrCat("rdma-ping-", ping, ": ");
  text.resize(std::min<size_t>(text.size(), size));
  for (uint32_t letter = ping; text.size() < size; ++letter) {
    text.push_back(static_cast<char>(kFirstLetter + letter % kLetters));
  }
  text.back() = '\0';
  return text;
}

RpingPeer::RpingPeer(Link& link, uint32_t size)
    : link_(link), message_out_(kMessage), message_in_(kMessage), source_(size), sink_(size) {}

absl::StatusOr<std::unique_ptr<RpingPeer>> RpingPeer::Prepare(Link& link, uint32_t size) {
  if (size < kMinPing || size > kMaxPing) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ping of ", size, " bytes: rping has ", kMinPing, " to ", kMaxPing));
  }
  std::unique_ptr<RpingPeer> peer(new RpingPeer(link, size));
  const auto add = [&link](std::vector<uint8_t>& bytes, std::unique_ptr<verbs::MemoryRegion>& region) {
    auto made = link.Register(absl::MakeSpan(bytes));
    if (made.ok()) region = *std::move(made);
    return made.status();
  };
  absl::Status status = add(peer->message_out_, peer->message_out_region_);
  status.Update(add(peer->message_in_, peer->message_in_region_));
  status.Update(add(peer->source_, peer->source_region_));
  status.Update(add(peer->sink_, peer->sink_region_));
  if (!status.ok()) return status;
  if (auto s = link.PostReceive(Whole(*peer->message_in_region_)); !s.ok()) return s;
  return peer;
}

absl::Status RpingPeer::Ping(uint32_t count) {
  for (uint32_t ping = 0; ping < count; ++ping) {
    const std::string text = PingText(ping, static_cast<uint32_t>(source_.size()));
    std::copy(text.begin(), text.end(), source_.begin());
    std::fill(sink_.begin(), sink_.end(), 0);
    for (verbs::MemoryRegion* region : {source_region_.get(), sink_region_.get()}) {
      if (auto s = Advertise(Whole(*region), region->rkey()); !s.ok()) return s;
      if (auto answer = AwaitMessage(); !answer.ok()) return answer.status();
    }
    if (auto s = Compare(sink_, ping); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> RpingPeer::Serve(std::optional<uint32_t> most) {
  for (uint32_t ping = 0;; ++ping) {
    if (ping == most) {
      link_.AwaitSends().IgnoreError();  // the client may be gone before it has acknowledged the last one
      return ping;
    }
    const auto source = AwaitMessage();
    if (absl::IsAborted(source.status())) return ping;  // the client left
    if (!source.ok()) return source.status();
    if (auto s = Answer(ping, *source); !s.ok()) return s;
  }
}

absl::Status RpingPeer::Answer(uint32_t ping, const Place& source) {
  if (source.size < kMinPing || source.size > sink_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the client's source has ", source.size, " bytes, not ", kMinPing,
                                                   " to ", sink_.size(), ": give both ends the same --size"));
  }
  if (auto s = Move(verbs::Opcode::kRead, source); !s.ok()) return s;
  if (auto s = Compare(absl::MakeConstSpan(sink_).first(source.size), ping); !s.ok()) return s;
  if (auto s = GoAhead(); !s.ok()) return s;
  const auto sink = AwaitMessage();
  if (!sink.ok()) return sink.status();
  if (sink->size != source.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the client's sink has ", sink->size, " bytes, its source ", source.size));
  }
  if (auto s = Move(verbs::Opcode::kWrite, *sink); !s.ok()) return s;
  return GoAhead();
}

absl::Status RpingPeer::Advertise(const verbs::Sge& piece, uint32_t rkey) {
  if (auto s = link_.AwaitSends(); !s.ok()) return s;  // message_out_ is ours again
  base::StoreBig64(message_out_.data(), reinterpret_cast<uintptr_t>(piece.address));
  base::StoreBig32(message_out_.data() + 8, rkey);
  base::StoreBig32(message_out_.data() + 12, piece.length);
  return link_.PostSend({}, Whole(*message_out_region_));
}

// Its completion is not awaited: the client may be gone before the acknowledgement comes.
absl::Status RpingPeer::GoAhead() { return link_.PostSend({}, Whole(*message_out_region_)); }

absl::StatusOr<RpingPeer::Place> RpingPeer::AwaitMessage() {
  const auto received = link_.AwaitReceive();
  if (!received.ok()) return received.status();
  if (received->byte_count != kMessage) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", received->byte_count, " bytes, not ", kMessage));
  }
  Place place;
  place.address = base::LoadBig64(message_in_.data());
  place.rkey = base::LoadBig32(message_in_.data() + 8);
  place.size = base::LoadBig32(message_in_.data() + 12);
  if (auto s = link_.PostReceive(Whole(*message_in_region_)); !s.ok()) return s;
  return place;
}

absl::Status RpingPeer::Move(verbs::Opcode opcode, const Place& place) {
  verbs::SendRequest request;
  request.opcode = opcode;
  request.remote_address = place.address;
  request.rkey = place.rkey;
  const verbs::Sge piece = {sink_.data(), place.size, sink_region_->lkey()};
  if (auto s = link_.PostSend(request, piece); !s.ok()) return s;
  return link_.AwaitSends();
}

}  // namespace tokamak::interop
