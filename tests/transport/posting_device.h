// A device that a test stands in front of: it sees what is posted to be sent, and decides what
// becomes of it.
#pragma once

#include <functional>
#include <memory>

#include "absl/types/span.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport::testing {

// Instead of queue_pair.PostSend(requests), which it may call.
using PostSendHook =
    std::function<verbs::PostResult(verbs::QueuePair& queue_pair, absl::Span<const verbs::SendRequest> requests)>;

std::unique_ptr<verbs::Device> WithPostSend(std::unique_ptr<verbs::Device> device, PostSendHook hook);

}  // namespace tokamak::transport::testing
