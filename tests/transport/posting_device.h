// A device that a test stands in front of: it sees what is posted to be sent, what memory is to be
// registered and what connections are asked for, and decides what becomes of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport::testing {

// Instead of queue_pair.PostSend(requests), which it may call.
using PostSendHook =
    std::function<verbs::PostResult(verbs::QueuePair& queue_pair, absl::Span<const verbs::SendRequest> requests)>;
// Before memory is registered, which is refused with what this returns.
using RegisterHook = std::function<absl::Status(absl::Span<uint8_t> memory, verbs::Access access)>;
// Sees the options of each connection that is asked for.
using ConnectHook = std::function<void(const verbs::ConnectOptions& options)>;

// Empty hooks change nothing.
struct DeviceHooks {
  PostSendHook post_send;
  RegisterHook on_register;
  ConnectHook on_connect;
  std::optional<verbs::Limits> limits;  // what the device says of itself
};

std::unique_ptr<verbs::Device> WithHooks(std::unique_ptr<verbs::Device> device, DeviceHooks hooks);
// With the first of them alone.
std::unique_ptr<verbs::Device> WithPostSend(std::unique_ptr<verbs::Device> device, PostSendHook hook);

}  // namespace tokamak::transport::testing
