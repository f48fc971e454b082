// The C interface's interrupts, and gets under way.
#include "tokamak/gets.h"

#include <memory>
#include <utility>

#include "lib/client/c/call.h"

using tokamak::Buffer;
using tokamak::Gets;
using tokamak::Interrupt;
using tokamak::Result;
using tokamak::Status;
using tokamak::client::c::Guarded;
using tokamak::client::c::IdOf;
using tokamak::client::c::InterruptOf;
using tokamak::client::c::NoneNull;
using tokamak::client::c::TimeoutOf;
using tokamak::client::c::ToC;
using tokamak::client::c::Told;

struct tokamak_gets {
  Gets gets;
};

static_assert(TOKAMAK_MAX_PENDING == Gets::kMaxPending);

extern "C" {

// ---- interrupts

tokamak_code tokamak_interrupt_make(tokamak_interrupt** interrupt) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(interrupt); !s.ok()) return s;
    Result<Interrupt> made = Interrupt::Make();
    if (!made.ok()) return made.status();
    *interrupt = new tokamak_interrupt{*std::move(made)};
    return Status();
  });
}

void tokamak_interrupt_fire(const tokamak_interrupt* interrupt) {
  if (interrupt != nullptr) interrupt->interrupt.Fire();
}

void tokamak_interrupt_reset(const tokamak_interrupt* interrupt) {
  if (interrupt != nullptr) interrupt->interrupt.Reset();
}

int tokamak_interrupt_fired(const tokamak_interrupt* interrupt) {
  return interrupt != nullptr && interrupt->interrupt.fired() ? 1 : 0;
}

void tokamak_interrupt_free(tokamak_interrupt* interrupt) { delete interrupt; }

// ---- gets under way

tokamak_code tokamak_gets_make(tokamak_client* client, tokamak_gets** gets) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, gets); !s.ok()) return s;
    *gets = new tokamak_gets{Gets(client->client)};
    return Status();
  });
}

tokamak_code tokamak_gets_begin(tokamak_gets* gets, const tokamak_id* id, int64_t timeout, uint64_t* number) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(gets, id); !s.ok()) return s;
    const Result<uint64_t> begun = gets->gets.Begin(IdOf(*id), TimeoutOf(timeout));
    if (!begun.ok()) return begun.status();
    if (number != nullptr) *number = *begun;
    return Status();
  });
}

tokamak_code tokamak_gets_send(tokamak_gets* gets) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(gets); !s.ok()) return s;
    return gets->gets.Send();
  });
}

tokamak_code tokamak_gets_next(tokamak_gets* gets, int64_t timeout, const tokamak_interrupt* interrupt,
                               tokamak_answer* answer) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(gets, answer); !s.ok()) return s;
    auto buffer = std::make_unique<tokamak_buffer>();  // before: no answer is lost for want of memory
    Result<Gets::Answer> next = gets->gets.Next(TimeoutOf(timeout), InterruptOf(interrupt));
    if (!next.ok()) return next.status();
    *answer = tokamak_answer{};
    answer->number = next->number;
    answer->id = ToC(next->id);
    answer->code = Told(next->buffer.status());
    if (!next->buffer.ok()) return Status();
    buffer->buffer = *std::move(next->buffer);
    answer->buffer = buffer.release();
    return Status();
  });
}

void tokamak_gets_cancel(tokamak_gets* gets, uint64_t number) {
  if (gets != nullptr) Guarded([&] { return gets->gets.Cancel(number), Status(); });
}

size_t tokamak_gets_pending(const tokamak_gets* gets) { return gets == nullptr ? 0 : gets->gets.pending(); }

tokamak_code tokamak_gets_descriptor(tokamak_gets* gets, int* descriptor) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(gets, descriptor); !s.ok()) return s;
    const Result<int> made = gets->gets.descriptor();
    if (!made.ok()) return made.status();
    *descriptor = *made;
    return Status();
  });
}

void tokamak_gets_free(tokamak_gets* gets) { delete gets; }

}  // extern "C"
