#include "tests/verbs/conformance/ends/work.h"

#include <utility>

namespace tokamak::verbs {

void PrintTo(const Completion& completion, std::ostream* out) {
  *out << "{id " << completion.id << ", " << ToString(completion.status);
  if (completion.status == CompletionStatus::kSuccess) {
    *out << ", ";
    PrintTo(completion.opcode, out);
    *out << ", " << completion.byte_count << " bytes";
    if (completion.has_immediate) *out << ", immediate " << completion.immediate;
    if (completion.has_invalidated) *out << ", invalidated";
  }
  *out << ", queue pair " << completion.queue_pair_number << "}";
}

void PrintTo(CompletionStatus status, std::ostream* out) { *out << ToString(status); }

void PrintTo(CompletionOpcode opcode, std::ostream* out) {
  static constexpr const char* kNames[] = {
      "kSend",       "kWrite",           "kRead",    "kCompareSwap",        "kFetchAdd",
      "kBindWindow", "kLocalInvalidate", "kReceive", "kReceiveWriteWithImm"};
  *out << kNames[static_cast<size_t>(opcode)];
}

void PrintTo(QueuePairState state, std::ostream* out) { *out << ToString(state); }

namespace conformance {
namespace {

using testing::AllOf;
using testing::Field;

Work Make(uint64_t id, Opcode opcode, std::vector<Sge> pieces) {
  Work work;
  work.request.id = id;
  work.request.opcode = opcode;
  work.request.flags = kSignaled;
  work.pieces = std::move(pieces);
  return work;
}

Work MakeRemote(uint64_t id, Opcode opcode, std::vector<Sge> pieces, uint64_t remote_address, uint32_t rkey) {
  Work work = Make(id, opcode, std::move(pieces));
  work.request.remote_address = remote_address;
  work.request.rkey = rkey;
  return work;
}

}  // namespace

Work Send(uint64_t id, std::vector<Sge> pieces) { return Make(id, Opcode::kSend, std::move(pieces)); }

Work SendWithImm(uint64_t id, std::vector<Sge> pieces, uint32_t immediate) {
  Work work = Make(id, Opcode::kSendWithImm, std::move(pieces));
  work.request.immediate = immediate;
  return work;
}

Work Write(uint64_t id, std::vector<Sge> pieces, uint64_t remote_address, uint32_t rkey) {
  return MakeRemote(id, Opcode::kWrite, std::move(pieces), remote_address, rkey);
}

Work WriteWithImm(uint64_t id, std::vector<Sge> pieces, uint64_t remote_address, uint32_t rkey, uint32_t immediate) {
  Work work = MakeRemote(id, Opcode::kWriteWithImm, std::move(pieces), remote_address, rkey);
  work.request.immediate = immediate;
  return work;
}

Work Read(uint64_t id, std::vector<Sge> pieces, uint64_t remote_address, uint32_t rkey) {
  return MakeRemote(id, Opcode::kRead, std::move(pieces), remote_address, rkey);
}

Work CompareSwap(uint64_t id, Sge result, uint64_t remote_address, uint32_t rkey, uint64_t compare, uint64_t swap) {
  Work work = MakeRemote(id, Opcode::kCompareSwap, {result}, remote_address, rkey);
  work.request.compare = compare;
  work.request.swap_or_add = swap;
  return work;
}

Work FetchAdd(uint64_t id, Sge result, uint64_t remote_address, uint32_t rkey, uint64_t add) {
  Work work = MakeRemote(id, Opcode::kFetchAdd, {result}, remote_address, rkey);
  work.request.swap_or_add = add;
  return work;
}

PostResult Post(QueuePair& queue_pair, std::vector<Work> batch) {
  std::vector<SendRequest> requests;
  for (Work& work : batch) {
    work.request.sges = work.pieces;
    requests.push_back(work.request);
  }
  return queue_pair.PostSend(requests);
}

PostResult PostReceives(QueuePair& queue_pair, const std::vector<Receive>& batch) {
  std::vector<ReceiveRequest> requests;
  for (const Receive& receive : batch) requests.push_back({receive.id, receive.pieces});
  return queue_pair.PostReceive(requests);
}

CompletionMatcher Done(uint64_t id, CompletionOpcode opcode) {
  return AllOf(Field("id", &Completion::id, id), Field("status", &Completion::status, CompletionStatus::kSuccess),
               Field("opcode", &Completion::opcode, opcode));
}

CompletionMatcher Received(uint64_t id, uint32_t bytes) {
  return AllOf(Done(id, CompletionOpcode::kReceive), Field("byte_count", &Completion::byte_count, bytes),
               Field("has_immediate", &Completion::has_immediate, false));
}

CompletionMatcher ReceivedImm(uint64_t id, uint32_t bytes, uint32_t immediate, CompletionOpcode opcode) {
  return AllOf(Done(id, opcode), Field("byte_count", &Completion::byte_count, bytes),
               Field("has_immediate", &Completion::has_immediate, true),
               Field("immediate", &Completion::immediate, immediate));
}

CompletionMatcher Flushed(uint64_t id) {
  return AllOf(Field("id", &Completion::id, id), Field("status", &Completion::status, CompletionStatus::kFlushed));
}

}  // namespace conformance
}  // namespace tokamak::verbs
