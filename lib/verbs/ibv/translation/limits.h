// Limits of a device: those that libibverbs reports, and, by the kind of transport, those that it
// does not.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// The longest list of Sges that we translate; devices have 1 to some 32.
constexpr uint32_t kMaxSges = 32;

// Inline sizes that are tried when a device is opened: multiples of kInlineStep up to kMaxInline.
constexpr uint32_t kMaxInline = 1024;
constexpr uint32_t kInlineStep = 16;

// `max_inline`: by trial, see Context::Open.
Limits MakeLimits(LinkKind link, const ibv_device_attr& device, const ibv_port_attr& port, uint32_t max_inline);

LinkKind LinkOf(ibv_transport_type transport, uint8_t link_layer);

}  // namespace tokamak::verbs::ibv
