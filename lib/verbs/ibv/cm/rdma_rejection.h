// The meaning, in words, of events of librdmacm that bring no connection.
#pragma once

#include <string>

#include "lib/verbs/ibv/cm/cm_channel.h"

namespace tokamak::verbs::ibv {

// InfiniBand's reasons to reject that we act upon. (12.6.7.2)
constexpr int kStaleConnection = 10;  // the peer remembers an earlier connection of this queue pair's number
constexpr int kConsumerReject = 28;   // by the peer's application

// Returns the reason in words: "nobody listens at this port", "connection timed out" or the like.
std::string EventText(const CmEvent& event);

}  // namespace tokamak::verbs::ibv
