// A Service listens at a device and keeps the requests that come, or accepts or rejects each at
// once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {

class Service final {
 public:
  Service(Backend& backend, size_t index) : backend_(backend), index_(index) {
    Address any_port = backend.device(index).address();
    any_port.port = 0;
    auto made = backend.device(index).connection_manager().Listen(
        backend.loop(index), any_port, [this](std::unique_ptr<ConnectionRequest> request) {
          ++seen;
          if (reject_with) {
            request->Reject(*reject_with);
          } else if (accept_with) {
            End& end = accept_with();
            last_accept = end.Accept(*request, accept_options);
          } else {
            requests.push_back(std::move(request));
          }
        });
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) listener = *std::move(made);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Address address() const { return listener == nullptr ? Address() : listener->address(); }

  // Waits for the next request that nobody accepted; null when none comes.
  std::unique_ptr<ConnectionRequest> Await() {
    if (!backend_.Drive([this] { return !requests.empty(); }, backend_.patience())) {
      ADD_FAILURE() << "no request came to device " << index_ << ". " << backend_.Counters();
      return nullptr;
    }
    std::unique_ptr<ConnectionRequest> request = std::move(requests.front());
    requests.erase(requests.begin());
    return request;
  }

  size_t seen = 0;                                           // requests
  std::vector<std::unique_ptr<ConnectionRequest>> requests;  // unanswered
  std::function<End&()> accept_with;                         // who accepts the next request at once
  std::optional<std::vector<uint8_t>> reject_with;           // private data: rejects all requests at once
  ConnectOptions accept_options;
  absl::Status last_accept;
  std::unique_ptr<Listener> listener;

 private:
  Backend& backend_;
  const size_t index_;
};

}  // namespace tokamak::verbs::conformance
