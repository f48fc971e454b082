// The end that answers: it does what it is asked to its own memory, and says what it finds there.
#include <algorithm>

#include "tests/interop/exchange.h"

namespace tokamak::interop {
namespace {

Pieces PiecesOf(const Message& message) { return {message.count, message.length, message.seed}; }

Message Reply(MessageResult result = MessageResult::kFine, uint64_t value = 0) {
  Message reply;
  reply.kind = MessageKind::kReply;
  reply.result = result;
  reply.value = value;
  return reply;
}

}  // namespace

absl::Status Exchange::Obey(MessageKind last) {
  for (;;) {
    const auto question = Hear();
    if (!question.ok()) return question.status();
    const Message reply = Carry(*question, last);
    const bool expects = question->kind == MessageKind::kExpect && reply.result == MessageResult::kFine;
    if (expects) {
      if (auto s = PostExpected(PiecesOf(*question)); !s.ok()) return s;
    }
    if (auto s = PostHearing(); !s.ok()) return s;
    if (auto s = Say(reply); !s.ok()) return s;
    if (question->kind == last) return link_.AwaitSends();  // the peer has it: the connection may go
    if (expects) {
      if (auto s = AwaitExpected(*question); !s.ok()) return s;
    }
  }
}

Message Exchange::Carry(const Message& question, MessageKind last) {
  const Pieces pieces = PiecesOf(question);
  if (pieces.count > kMaxInFlight || pieces.bytes_with_guard() > window_.size()) return Reply(MessageResult::kRefused);
  switch (question.kind) {
    case MessageKind::kClear:
    case MessageKind::kExpect:
      verdict_ = Reply();
      Clear(absl::MakeSpan(window_), pieces);
      return Reply();
    case MessageKind::kFill:
      Fill(absl::MakeSpan(window_), pieces);
      return Reply();
    case MessageKind::kCheck: {
      if (verdict_.result != MessageResult::kFine) return verdict_;
      const auto wrong = FindWrong(window_, pieces);
      return wrong ? Reply(MessageResult::kWrongByte, *wrong) : Reply();
    }
    case MessageKind::kSetValue:
      std::copy_n(reinterpret_cast<const uint8_t*>(&question.value), sizeof question.value, window_.data());
      return Reply();
    case MessageKind::kTellValue: {
      Message reply = Reply();
      std::copy_n(window_.data(), sizeof reply.value, reinterpret_cast<uint8_t*>(&reply.value));
      return reply;
    }
    case MessageKind::kYourTurn:
    case MessageKind::kEnd:
      return Reply(question.kind == last ? MessageResult::kFine : MessageResult::kRefused);
    case MessageKind::kHello:
    case MessageKind::kReply:
      return Reply(MessageResult::kRefused);
  }
  return Reply(MessageResult::kRefused);
}

absl::Status Exchange::PostExpected(const Pieces& pieces) {
  for (uint32_t i = 0; i < pieces.count; ++i) {
    const verbs::Sge piece = {window_.data() + pieces.offset(i), pieces.length, window_region_->lkey()};
    if (auto s = link_.PostReceive(piece); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Exchange::AwaitExpected(const Message& expected) {
  const bool with_immediate = (expected.flags & kWithImmediate) != 0;
  for (uint32_t i = 0; i < expected.count; ++i) {
    const auto received = link_.AwaitReceive();
    if (!received.ok()) return received.status();
    const uint32_t immediate = static_cast<uint32_t>(expected.value) + i;
    if (received->byte_count != expected.length) {
      verdict_ = Reply(MessageResult::kWrongLength, received->byte_count);
    } else if (received->has_immediate != with_immediate || (with_immediate && received->immediate != immediate)) {
      verdict_ = Reply(MessageResult::kWrongImmediate, received->has_immediate ? received->immediate : kNoImmediate);
    }
  }
  return absl::OkStatus();
}

}  // namespace tokamak::interop
