// CallRouter shares one call channel between nodes: a request's first byte names its service.
//
// Untrusted input: an unknown service, or none, gets an empty reply. A service returns its work on
// the answer, see transport::CallHandler. Thread rule: the control loop.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "lib/base/handle.h"
#include "lib/transport/caller.h"

namespace tokamak::node {

enum class Service : uint8_t { kDirectory = 1, kObjects = 2, kNumbers = 3 };
constexpr size_t kServices = 4;

// The last of the directory's request kinds, from 1, that announce a node's life and objects
// (docs/directory.md).
constexpr uint8_t kLastKindOfOwnLife = 3;

inline bool IsOfOwnLife(absl::Span<const uint8_t> request) {
  return request.size() >= 2 && request[0] == static_cast<uint8_t>(Service::kDirectory) && request[1] >= 1 &&
         request[1] <= kLastKindOfOwnLife;
}

class CallRouter final {
 public:
  using Reply = transport::Reply;
  using Handler = transport::CallHandler;

  void Register(Service service, Handler handler) { handlers_[static_cast<size_t>(service)] = std::move(handler); }

  // `request` includes the service byte.
  base::Pending Handle(absl::Span<const uint8_t> request, Reply reply) const {
    if (request.empty() || request[0] >= kServices || handlers_[request[0]] == nullptr) {
      reply({});
      return nullptr;
    }
    return handlers_[request[0]](request.subspan(1), std::move(reply));
  }

 private:
  std::array<Handler, kServices> handlers_;
};

class ServiceCaller final : public transport::Caller {
 public:
  // `caller` must outlive it.
  ServiceCaller(transport::Caller& caller, Service service) : caller_(caller), service_(service) {}

  base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                     CallCallback done) override {
    absl::InlinedVector<uint8_t, kUsualRequest> framed;
    framed.reserve(1 + request.size());
    framed.push_back(static_cast<uint8_t>(service_));
    framed.insert(framed.end(), request.begin(), request.end());
    return caller_.Call(peer, framed, deadline, std::move(done));
  }

  uint32_t max_call_size() const override {
    const uint32_t whole = caller_.max_call_size();
    return whole == 0 ? 0 : whole - 1;
  }

 private:
  static constexpr size_t kUsualRequest = 128;  // bytes without an allocation

  transport::Caller& caller_;
  const Service service_;
};

}  // namespace tokamak::node
