#include "tests/interop/exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"

namespace tokamak::interop {
namespace {

using verbs::Opcode;

// Returns the meaning of a question's result, for the end that asked.
absl::Status StatusOf(const Message& reply) {
  switch (reply.result) {
    case MessageResult::kFine:
      return absl::OkStatus();
    case MessageResult::kWrongByte:
      return absl::DataLossError(absl::StrCat("the peer found byte ", reply.value, " wrong"));
    case MessageResult::kWrongLength:
      return absl::DataLossError(absl::StrCat("the peer got a message of ", reply.value, " bytes"));
    case MessageResult::kWrongImmediate:
      return absl::DataLossError(absl::StrCat("the peer got immediate ", reply.value));
    case MessageResult::kRefused:
      return absl::InvalidArgumentError("the peer refused a question");
  }
  return absl::InternalError("unknown result");
}

bool CarriesImmediate(Opcode opcode) { return opcode == Opcode::kSendWithImm || opcode == Opcode::kWriteWithImm; }

}  // namespace

const char* NameOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSend:
      return "SEND";
    case Opcode::kSendWithImm:
      return "SEND with immediate";
    case Opcode::kWrite:
      return "WRITE";
    case Opcode::kWriteWithImm:
      return "WRITE with immediate";
    case Opcode::kRead:
      return "READ";
    case Opcode::kCompareSwap:
      return "compare and swap";
    case Opcode::kFetchAdd:
      return "fetch and add";
    default:
      return "?";
  }
}

std::string ToString(const ExchangeReport& report) {
  std::string text = absl::StrCat("path MTU ", report.path_mtu);
  for (const auto& [opcode, tally] : report.led) {
    absl::StrAppend(&text, ", ", NameOf(opcode), " ", tally.requests, " (", base::FormatSize(tally.bytes), ")");
  }
  return text;
}

std::vector<Step> Plan(uint32_t path_mtu, uint32_t largest, bool immediate, bool atomics) {
  std::vector<uint32_t> lengths = {0, 1, 3, 4, 5, 8, 63, 64, 65, 255, 256, 257, largest - 1, largest};
  for (const uint32_t packets : {1, 2, 3, 16}) {
    for (const uint32_t length : {path_mtu * packets - 1, path_mtu * packets, path_mtu * packets + 1}) {
      lengths.push_back(length);
    }
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  lengths.erase(std::upper_bound(lengths.begin(), lengths.end(), largest), lengths.end());

  std::vector<Step> plan;
  for (const Opcode opcode :
       {Opcode::kSend, Opcode::kSendWithImm, Opcode::kWrite, Opcode::kWriteWithImm, Opcode::kRead}) {
    if (CarriesImmediate(opcode) && !immediate) continue;
    for (const uint32_t length : lengths) plan.push_back({opcode, length, 1});
    for (const uint32_t length : {uint32_t{64}, std::min(kInFlightBytes, largest)}) {
      plan.push_back({opcode, length, kMaxInFlight});
    }
  }
  if (!atomics) return plan;
  for (const Opcode opcode : {Opcode::kCompareSwap, Opcode::kFetchAdd}) {
    plan.push_back({opcode, sizeof(uint64_t), 1});
    plan.push_back({opcode, sizeof(uint64_t), kMaxInFlight});
  }
  return plan;
}

Exchange::Exchange(Link& link, const ExchangeOptions& options)
    : link_(link),
      largest_(options.largest),
      window_(std::max(options.largest, kMaxInFlight * kInFlightBytes) + kGuard),
      own_(window_.size()) {}

absl::StatusOr<std::unique_ptr<Exchange>> Exchange::Prepare(Link& link, const ExchangeOptions& options) {
  if (options.largest < kMinLargest || options.largest > kMaxLargest) {
    return absl::InvalidArgumentError(
        absl::StrCat("largest ", options.largest, ": from ", kMinLargest, " to ", kMaxLargest));
  }
  std::unique_ptr<Exchange> exchange(new Exchange(link, options));
  const auto add = [&link](absl::Span<uint8_t> bytes, std::unique_ptr<verbs::MemoryRegion>& region) {
    auto made = link.Register(bytes);
    if (made.ok()) region = *std::move(made);
    return made.status();
  };
  absl::Status status = add(absl::MakeSpan(exchange->window_), exchange->window_region_);
  status.Update(add(absl::MakeSpan(exchange->own_), exchange->own_region_));
  status.Update(add(absl::MakeSpan(exchange->said_), exchange->said_region_));
  status.Update(add(absl::MakeSpan(exchange->heard_), exchange->heard_region_));
  if (status.ok()) status = exchange->PostHearing();
  if (!status.ok()) return status;
  return exchange;
}

absl::StatusOr<ExchangeReport> Exchange::Lead() {
  if (auto s = Say(Greeting()); !s.ok()) return s;
  const auto hello = Hear();
  if (!hello.ok()) return hello.status();
  if (auto s = PostHearing(); !s.ok()) return s;
  if (auto s = TakeGreeting(*hello); !s.ok()) return s;
  if (auto s = RunPlan(); !s.ok()) return s;
  Message turn;
  turn.kind = MessageKind::kYourTurn;
  if (auto answer = Ask(turn); !answer.ok()) return answer.status();
  if (auto s = Obey(MessageKind::kEnd); !s.ok()) return s;
  return report_;
}

absl::StatusOr<ExchangeReport> Exchange::Follow() {
  const auto hello = Hear();
  if (!hello.ok()) return hello.status();
  if (auto s = PostHearing(); !s.ok()) return s;
  if (auto s = TakeGreeting(*hello); !s.ok()) return s;
  if (auto s = Say(Greeting()); !s.ok()) return s;
  if (auto s = Obey(MessageKind::kYourTurn); !s.ok()) return s;
  if (auto s = RunPlan(); !s.ok()) return s;
  Message end;
  end.kind = MessageKind::kEnd;
  if (auto answer = Ask(end); !answer.ok()) return answer.status();
  return report_;
}

// ---- Messages.

absl::Status Exchange::Say(const Message& message) {
  if (auto s = link_.AwaitSends(); !s.ok()) return s;  // said_ is ours again
  said_ = Encode(message);
  return link_.PostSend({}, {said_.data(), kMessageBytes, said_region_->lkey()});
}

absl::StatusOr<Message> Exchange::Hear() {
  const auto received = link_.AwaitReceive();
  if (!received.ok()) return received.status();
  return Decode(absl::MakeConstSpan(heard_).first(std::min<size_t>(received->byte_count, heard_.size())));
}

absl::Status Exchange::PostHearing() {
  return link_.PostReceive({heard_.data(), kMessageBytes, heard_region_->lkey()});
}

absl::StatusOr<Message> Exchange::Ask(const Message& question) {
  if (auto s = Say(question); !s.ok()) return s;
  const auto reply = Hear();
  if (!reply.ok()) return reply.status();
  if (reply->kind != MessageKind::kReply) return absl::InvalidArgumentError("the peer asked when it was to answer");
  if (auto s = PostHearing(); !s.ok()) return s;
  if (auto s = StatusOf(*reply); !s.ok()) return s;
  return *reply;
}

absl::Status Exchange::AskAbout(MessageKind kind, const Pieces& pieces, uint8_t flags, uint64_t value) {
  Message question;
  question.kind = kind;
  question.flags = flags;
  question.count = pieces.count;
  question.length = pieces.length;
  question.seed = pieces.seed;
  question.value = value;
  return Ask(question).status();
}

Message Exchange::Greeting() const {
  Message hello;
  hello.kind = MessageKind::kHello;
  if (link_.limits().atomics) hello.flags |= kHasAtomics;
  if (link_.limits().immediate) hello.flags |= kHasImmediate;
  hello.address = reinterpret_cast<uintptr_t>(window_.data());
  hello.rkey = window_region_->rkey();
  hello.window = window_.size();
  return hello;
}

absl::Status Exchange::TakeGreeting(const Message& hello) {
  if (hello.kind != MessageKind::kHello || hello.window < kMaxInFlight * kInFlightBytes + kGuard) {
    return absl::InvalidArgumentError("the peer's first message is no greeting of this program");
  }
  peer_ = hello;
  return absl::OkStatus();
}

// ---- Leading.

absl::Status Exchange::RunPlan() {
  const uint8_t both = peer_.flags & Greeting().flags;
  const auto largest = static_cast<uint32_t>(std::min<uint64_t>(largest_, peer_.window - kGuard));
  report_.path_mtu = link_.path_mtu();
  for (const Step& step : Plan(report_.path_mtu, largest, (both & kHasImmediate) != 0, (both & kHasAtomics) != 0)) {
    if (auto s = Try(step); !s.ok()) {
      return absl::Status(
          s.code(), absl::StrCat(step.count, " x ", NameOf(step.opcode), " of ", step.length, " bytes: ", s.message()));
    }
    Tally& tally = report_.led[step.opcode];
    tally.requests += step.count;
    tally.bytes += uint64_t{step.count} * step.length;
  }
  return absl::OkStatus();
}

absl::Status Exchange::Try(const Step& step) {
  const Pieces pieces = {step.count, step.length, next_seed_};
  next_seed_ += step.count;
  switch (step.opcode) {
    case Opcode::kRead:
      return TryRead(pieces);
    case Opcode::kCompareSwap:
    case Opcode::kFetchAdd:
      return TryAtomics(step.opcode, step.count);
    default:
      return TryPush(step.opcode, pieces);
  }
}

absl::Status Exchange::TryPush(Opcode opcode, const Pieces& pieces) {
  verbs::SendRequest request;
  request.opcode = opcode;
  request.immediate = static_cast<uint32_t>(pieces.seed * 0x9e3779b1);
  uint8_t flags = CarriesImmediate(opcode) ? kWithImmediate : 0;
  if (opcode == Opcode::kWriteWithImm) flags |= kByWrite;
  const MessageKind prepare = opcode == Opcode::kWrite ? MessageKind::kClear : MessageKind::kExpect;
  if (auto s = AskAbout(prepare, pieces, flags, request.immediate); !s.ok()) return s;
  Fill(absl::MakeSpan(own_), pieces);
  if (auto s = PostPieces(request, pieces); !s.ok()) return s;
  return AskAbout(MessageKind::kCheck, pieces);
}

absl::Status Exchange::TryRead(const Pieces& pieces) {
  if (auto s = AskAbout(MessageKind::kFill, pieces); !s.ok()) return s;
  Clear(absl::MakeSpan(own_), pieces);
  verbs::SendRequest request;
  request.opcode = Opcode::kRead;
  if (auto s = PostPieces(request, pieces); !s.ok()) return s;
  const auto wrong = FindWrong(own_, pieces);
  return wrong ? absl::DataLossError(absl::StrCat("byte ", *wrong, " is wrong")) : absl::OkStatus();
}

// Each adds `add` to what the one before it left; a compare and swap does so knowing what that is.
absl::Status Exchange::TryAtomics(Opcode opcode, uint32_t count) {
  const uint64_t start = next_seed_ * 0x9e3779b97f4a7c15;
  const uint64_t add = start | 1;
  Message set;
  set.kind = MessageKind::kSetValue;
  set.value = start;
  if (auto answer = Ask(set); !answer.ok()) return answer.status();
  const Pieces results = {count, sizeof(uint64_t), 0};
  Clear(absl::MakeSpan(own_), results);
  for (uint32_t i = 0; i < count; ++i) {
    verbs::SendRequest request;
    request.opcode = opcode;
    request.remote_address = peer_.address;
    request.rkey = peer_.rkey;
    request.compare = start + i * add;
    request.swap_or_add = opcode == Opcode::kFetchAdd ? add : request.compare + add;
    const verbs::Sge piece = {own_.data() + results.offset(i), sizeof(uint64_t), own_region_->lkey()};
    if (auto s = link_.PostSend(request, piece); !s.ok()) return s;
  }
  if (auto s = link_.AwaitSends(); !s.ok()) return s;
  for (uint32_t i = 0; i < count; ++i) {
    if (OwnValue(i) != start + i * add) {
      return absl::DataLossError(absl::StrCat("number ", i, " returned ", OwnValue(i), ", not ", start + i * add));
    }
  }
  Message tell;
  tell.kind = MessageKind::kTellValue;
  const auto present = Ask(tell);
  if (!present.ok()) return present.status();
  if (present->value != start + count * add) {
    return absl::DataLossError(absl::StrCat("they left ", present->value, ", not ", start + count * add));
  }
  return opcode == Opcode::kCompareSwap ? TryStaleCompare(start, present->value) : absl::OkStatus();
}

// A swap that expects another value than is there: it returns what is there, and leaves it.
absl::Status Exchange::TryStaleCompare(uint64_t stale, uint64_t present) {
  verbs::SendRequest request;
  request.opcode = Opcode::kCompareSwap;
  request.remote_address = peer_.address;
  request.rkey = peer_.rkey;
  request.compare = stale;
  request.swap_or_add = stale;
  const verbs::Sge piece = {own_.data(), sizeof(uint64_t), own_region_->lkey()};
  if (auto s = link_.PostSend(request, piece); !s.ok()) return s;
  if (auto s = link_.AwaitSends(); !s.ok()) return s;
  Message tell;
  tell.kind = MessageKind::kTellValue;
  const auto after = Ask(tell);
  if (!after.ok()) return after.status();
  if (OwnValue(0) == present && after->value == present) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("expecting another value it returned ", OwnValue(0), " and left ",
                                          after->value, " where ", present, " was"));
}

absl::Status Exchange::PostPieces(verbs::SendRequest request, const Pieces& pieces) {
  const uint32_t first_immediate = request.immediate;
  for (uint32_t i = 0; i < pieces.count; ++i) {
    request.remote_address = peer_.address + pieces.offset(i);
    request.rkey = peer_.rkey;
    request.immediate = first_immediate + i;
    const verbs::Sge piece = {own_.data() + pieces.offset(i), pieces.length, own_region_->lkey()};
    if (auto s = link_.PostSend(request, piece); !s.ok()) return s;
  }
  return link_.AwaitSends();
}

uint64_t Exchange::OwnValue(uint32_t index) const {
  uint64_t value = 0;
  std::copy_n(own_.data() + index * sizeof value, sizeof value, reinterpret_cast<uint8_t*>(&value));
  return value;
}

}  // namespace tokamak::interop
