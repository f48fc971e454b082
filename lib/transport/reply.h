// Reply answers a call, at most once; it does nothing after that, or when nobody waits for it any
// more. Where all copies of it are dropped unused, the caller is told that there is no answer.
//
// It knows whose call that is, so that what calls make us keep can be bounded for each peer. An
// address is all that is known of a peer, and it may have several nodes.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include "absl/types/span.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

class Reply final {
 public:
  using Answer = std::function<void(absl::Span<const uint8_t>)>;

  Reply() = default;
  Reply(std::nullptr_t) {}
  template <typename F,
            typename = std::enable_if_t<std::is_constructible_v<Answer, F> && !std::is_same_v<std::decay_t<F>, Reply>>>
  Reply(F&& answer, const verbs::Address& peer = verbs::Address())  // NOLINT: a lambda is one
      : answer_(std::forward<F>(answer)), peer_(peer) {}

  void operator()(absl::Span<const uint8_t> bytes) const { answer_(bytes); }
  explicit operator bool() const { return answer_ != nullptr; }

  // Whoever is answered; unspecified where no peer asked.
  const verbs::Address& peer() const { return peer_; }

 private:
  Answer answer_;
  verbs::Address peer_;
};

}  // namespace tokamak::transport
