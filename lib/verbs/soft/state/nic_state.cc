#include "lib/verbs/soft/state/nic_state.h"

#include <utility>

#include "lib/verbs/soft/state/queue_pair_core.h"

namespace tokamak::verbs::soft {

NicState::NicState(base::EventLoop& loop, base::Trace& trace, const DeviceOptions& device_options,
                   const SecretNumbers& key_numbers, std::function<void()> wake_up, base::Task on_timer)
    : options(device_options),
      keys(key_numbers, options.host_memory),
      outbox(device_options.batch_packets),
      alarms(loop, std::move(wake_up), std::move(on_timer)),
      stall_(alarms, [this]() REQUIRES_NIC_MUTEX { OnStall(); }),
      patience_(alarms, [this]() REQUIRES_NIC_MUTEX { AnswerPatient(); }),
      trace_(trace),
      tracing_(dynamic_cast<base::NoTrace*>(&trace) == nullptr) {}

void NicState::AnswerPatient() {
  patience_used_ = 0;
  patience_.Cancel();
  while (QueuePairCore* queue_pair = patient.TakeFirst()) queue_pair->MarkAnswer();
}

void NicState::OnStall() {
  if (send_waiters.empty()) return;
  if (sends.given_back() != given_back_seen_) {
    given_back_seen_ = sends.given_back();
    stall_.Set(kSendStall);
    return;
  }
  sends.Stall();
  while (QueuePairCore* waiter = send_waiters.TakeFirst()) waiter->MarkReady();
}

}  // namespace tokamak::verbs::soft
