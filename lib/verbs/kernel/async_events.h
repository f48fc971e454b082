// The asynchronous events of one opened device: of queue pairs, queues and the port, outside of any
// request. (11.6.3)
//
// Thread rule: one lock's.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "lib/verbs/kernel/event_pipe.h"

namespace tokamak::verbs::kernel {

class AsyncEvents final {
 public:
  explicit AsyncEvents(std::unique_ptr<EventPipe> pipe) : pipe_(std::move(pipe)) {}

  // `element`: the program's name of the object, or the port's number.
  void Raise(ibv_event_type type, uint64_t element) {
    ib_uverbs_async_event_desc event{};
    event.element = element;
    event.event_type = type;
    pipe_->Write(&event);
  }

  // Must be called when the object goes. Returns how many of its events the program has read.
  uint32_t Retire(uint64_t element) { return pipe_->Retire(element); }

  int TakeReadEnd() { return pipe_->TakeReadEnd(); }

 private:
  const std::unique_ptr<EventPipe> pipe_;
};

}  // namespace tokamak::verbs::kernel
