// The opposite of Scatter: a request's memory becomes a packet's payload, without a copy.
#pragma once

#include <cstdint>

#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/memory.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/outbox.h"
#include "lib/verbs/soft/state/work_queue.h"

namespace tokamak::verbs::soft {

// True if keys and host let the NIC read `length` bytes from `offset` on.
bool MayGather(const KeyTable& keys, DomainId domain, const SourceBytes& source, uint32_t offset,
               uint32_t length) REQUIRES_NIC_MUTEX;

// Makes these bytes the payload of `packet`, the last of `outbox`, which notes the keys used.
// `inline_bytes` are the slot's own.
void Gather(const KeyTable& keys, const SourceBytes& source, const uint8_t* inline_bytes, uint32_t offset,
            uint32_t length, Outbox& outbox, Packet* packet) REQUIRES_NIC_MUTEX;

}  // namespace tokamak::verbs::soft
