// RailHost is what a rail, primary or secondary, needs of its connection.
#pragma once

#include <cstdint>

#include "lib/transport/channels/shared_completions.h"
#include "lib/transport/messages/hello.h"

namespace tokamak::transport {

class RailHost {
 public:
  virtual ~RailHost() = default;
  virtual Hello MyHello(uint32_t queue) const = 0;
  virtual void Wake() = 0;
  virtual SharedCompletions::User& completions_user() = 0;
  // Sends RAIL_DOWN.
  virtual void SayDown(uint32_t rail) = 0;
};

}  // namespace tokamak::transport
