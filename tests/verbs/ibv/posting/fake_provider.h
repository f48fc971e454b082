// FakeProvider takes the posted requests of one ibv_qp, without a device, and remembers them.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokamak::verbs::ibv {

class FakeProvider final {
 public:
  struct Request {
    uint64_t wr_id = 0;
    ibv_wr_opcode opcode{};   // sends
    unsigned send_flags = 0;  // sends
    int sges = 0;
  };

  FakeProvider() {
    context_.ops.post_send = &PostSend;
    context_.ops.post_recv = &PostReceive;
    queue_pair_.context = &context_;
    queue_pair_.qp_context = this;
  }
  FakeProvider(const FakeProvider&) = delete;
  FakeProvider& operator=(const FakeProvider&) = delete;

  ibv_qp* get() { return &queue_pair_; }

  size_t room = SIZE_MAX;  // requests that it still takes; others are refused with ENOMEM
  std::vector<Request> sends;
  std::vector<Request> receives;
  std::vector<size_t> batches;  // sizes of the chains taken, or begun

 private:
  static Request Of(const ibv_send_wr& from) { return {from.wr_id, from.opcode, from.send_flags, from.num_sge}; }
  static Request Of(const ibv_recv_wr& from) { return {from.wr_id, {}, 0, from.num_sge}; }

  template <typename WorkRequest>
  int Take(WorkRequest* first, WorkRequest** bad, std::vector<Request>* to) {
    batches.push_back(0);
    for (WorkRequest* at = first; at != nullptr; at = at->next) {
      if (room == 0) {
        *bad = at;
        return ENOMEM;
      }
      --room;
      ++batches.back();
      to->push_back(Of(*at));
    }
    return 0;
  }

  static int PostSend(ibv_qp* queue_pair, ibv_send_wr* first, ibv_send_wr** bad) {
    auto* const self = static_cast<FakeProvider*>(queue_pair->qp_context);
    return self->Take(first, bad, &self->sends);
  }
  static int PostReceive(ibv_qp* queue_pair, ibv_recv_wr* first, ibv_recv_wr** bad) {
    auto* const self = static_cast<FakeProvider*>(queue_pair->qp_context);
    return self->Take(first, bad, &self->receives);
  }

  ibv_context context_{};
  ibv_qp queue_pair_{};
};

}  // namespace tokamak::verbs::ibv
