// Reply answers a call, at most once; later answers, and those that nobody waits for, do nothing.
// Once all copies are dropped unused, the caller gets an error.
//
// It knows the caller's address, to bound the memory of its calls; several nodes may share one. And
// it knows how many calls came in one task, to bound the time of that task.
#pragma once

#include <cstddef>
#include <cstdint>
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
  Reply(F&& answer, const verbs::Address& peer = verbs::Address(), uint32_t nth = 0)  // NOLINT: a lambda is one
      : answer_(std::forward<F>(answer)), peer_(peer), nth_(nth) {}

  void operator()(absl::Span<const uint8_t> bytes) const { answer_(bytes); }
  explicit operator bool() const { return answer_ != nullptr; }

  // Unspecified if no peer asked.
  const verbs::Address& peer() const { return peer_; }
  // The number of the call, from 1, among those that its task of the endpoint's loop hands out.
  uint32_t nth() const { return nth_; }

 private:
  Answer answer_;
  verbs::Address peer_;
  uint32_t nth_ = 0;
};

}  // namespace tokamak::transport
