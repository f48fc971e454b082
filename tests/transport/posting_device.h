// A device that a test stands in front of: it sees what is posted to be sent, or what memory is to
// be registered, and decides what becomes of it.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport::testing {

// Instead of queue_pair.PostSend(requests), which it may call.
using PostSendHook =
    std::function<verbs::PostResult(verbs::QueuePair& queue_pair, absl::Span<const verbs::SendRequest> requests)>;

std::unique_ptr<verbs::Device> WithPostSend(std::unique_ptr<verbs::Device> device, PostSendHook hook);

// Before memory is registered, which is refused with what this returns.
using RegisterHook = std::function<absl::Status(absl::Span<uint8_t> memory)>;

std::unique_ptr<verbs::Device> WithRegister(std::unique_ptr<verbs::Device> device, RegisterHook hook);

}  // namespace tokamak::transport::testing
