// PendingRequest is one request of a program that is answered later; PendingRequests are those of
// one session.
//
// Law: it is answered at most once, and ends with its answer, or unanswered with its session:
// dropping cancels what it waits for, and no callback runs after. Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "lib/base/byte_budget.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/program_share.h"
#include "lib/daemon/clients/requests/asker.h"

namespace tokamak::daemon {

class PendingRequests;

struct RequestCost {
  // Bytes of a request and of each object: above the measured ones.
  static constexpr uint64_t kRequestMemory = 1024;
  static constexpr uint64_t kIdMemory = 256;

  size_t ids = 0;
  uint64_t bytes = 0;  // waiting for room

  uint64_t memory() const { return kRequestMemory + ids * kIdMemory + bytes; }
};

class PendingRequest {
 public:
  // `all` must outlive it.
  PendingRequest(PendingRequests& all, const client::Header& header) : all_(all), header_(header) {}
  virtual ~PendingRequest() = default;
  PendingRequest(const PendingRequest&) = delete;
  PendingRequest& operator=(const PendingRequest&) = delete;

  const client::Header& header() const { return header_; }

 protected:
  const Asker& asker() const;

  // Answers, and destroys the request.
  template <typename Reply>
  void EndWith(const Reply& reply) {
    asker().Answer(header_, reply);
    End();
  }
  void EndWith(const absl::Status& status) {
    asker().AnswerStatus(header_, status);
    End();
  }

 private:
  friend class PendingRequests;

  void End();

  PendingRequests& all_;
  const client::Header header_;
  base::ByteClaim memory_;
  size_t ids_ = 0;
  std::unique_ptr<PendingRequest> self_;  // while listed
  base::Link<PendingRequest> link_;
};

class PendingRequests final {
 public:
  // `asker` and `share`, which may be null, must outlive it.
  PendingRequests(const Asker& asker, ProgramShare* share) : asker_(asker), share_(share) {}
  ~PendingRequests() { EndAll(); }
  PendingRequests(const PendingRequests&) = delete;
  PendingRequests& operator=(const PendingRequests&) = delete;

  const Asker& asker() const { return asker_; }
  size_t size() const { return list_.size(); }
  size_t ids() const { return ids_; }

  // Requires room for the cost in the program's share. Lives until it ends.
  template <typename Request>
  Request& Add(const client::Header& header, const RequestCost& cost) {
    auto request = std::make_unique<Request>(*this, header);
    Request& added = *request;
    Register(std::move(request), cost);
    return added;
  }

  void End(PendingRequest& request);
  void EndAll();

  // Returns the oldest, or nullptr.
  template <typename Matches>
  PendingRequest* Find(Matches matches) const {
    for (PendingRequest* request = list_.first(); request != nullptr; request = list_.Next(request)) {
      if (matches(*request)) return request;
    }
    return nullptr;
  }

 private:
  void Register(std::unique_ptr<PendingRequest> request, const RequestCost& cost);

  const Asker& asker_;
  ProgramShare* const share_;
  size_t ids_ = 0;
  base::IntrusiveList<PendingRequest, &PendingRequest::link_> list_;
};

}  // namespace tokamak::daemon
