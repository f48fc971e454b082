// RailHost is what a rail, primary or secondary, needs of its connection.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "lib/transport/channels/shared_completions.h"
#include "lib/transport/messages/hello.h"

namespace tokamak::transport {

class RailHost {
 public:
  virtual ~RailHost() = default;
  // Returns our hello, with its proof, for a bulk queue pair that connects; with `asked`, the
  // answer.
  virtual Hello MyHello(uint32_t queue, const Hello* asked) = 0;
  // kPermissionDenied, kAlreadyExists: the hello of a bulk queue pair does not prove that it
  // belongs to the connection.
  virtual absl::Status CheckProof(const Hello& theirs) = 0;
  virtual void Wake() = 0;
  virtual SharedCompletions::User& completions_user() = 0;
  // Sends RAIL_DOWN.
  virtual void SayDown(uint32_t rail) = 0;
};

}  // namespace tokamak::transport
