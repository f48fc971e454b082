// PendingRequest is one request of a program that is answered later; PendingRequests are those of
// one session.
//
// Each kind has a class, with the handles of what it waits for and the reply so far. A session
// begins one with Add and, at once, the Start of its class.
// Law: a request is answered at most once, and ends with its answer. With its session it ends
// unanswered: dropping it cancels what it waits for, and no callback of it runs after.
// Thread rule: the control loop.
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

// The part of its session's and program's bounds that a waiting request uses.
struct RequestCost {
  // Bytes of a request and of each of its objects: somewhat more than measured.
  static constexpr uint64_t kRequestMemory = 1024;
  static constexpr uint64_t kIdMemory = 256;

  size_t ids = 0;      // objects in it
  uint64_t bytes = 0;  // to put when there is room

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

  // Answers, and ends the request: it is destroyed.
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
  std::unique_ptr<PendingRequest> self_;  // while on the list
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
  size_t ids() const { return ids_; }  // objects in the requests

  // Requires room for the cost in the program's share. The request lives until it ends.
  template <typename Request>
  Request& Add(const client::Header& header, const RequestCost& cost) {
    auto request = std::make_unique<Request>(*this, header);
    Request& added = *request;
    Register(std::move(request), cost);
    return added;
  }

  // Ends without an answer; the request is destroyed.
  void End(PendingRequest& request);
  void EndAll();

  // Returns the oldest request for which `matches(request)` is true, or nullptr.
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
