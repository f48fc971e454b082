// What events of librdmacm that bring no connection say, in words.
#pragma once

#include <string>

#include "lib/verbs/ibv/cm/cm_channel.h"

namespace tokamak::verbs::ibv {

// InfiniBand's reasons to reject that we act upon. (12.6.7.2)
constexpr int kStaleConnection = 10;  // the peer remembers an earlier connection of this queue pair's number
constexpr int kConsumerReject = 28;   // the peer's application said no

// "nobody listens at this port", "connection timed out": by the event's kind and status.
std::string EventText(const CmEvent& event);

}  // namespace tokamak::verbs::ibv
