// RailLinks connects the queue pairs of a connection on one rail: it sends a hello with each,
// compares the peer's, and knows when all of them are established.
//
// Dropping it, which a callback may, disconnects them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/messages/hello.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class RailLinks final {
 public:
  // As the network has it.
  struct Path {
    uint32_t mtu = verbs::kMaxMtu;  // bytes: of the smallest
    uint32_t peer_queue_pair = 0;   // of the link that came up last; 0: not known
  };

  class User {
   public:
    virtual ~User() = default;
    // Returns our hello for a queue pair that connects; with `asked`, the answer to the peer's.
    virtual Hello MyHello(uint32_t queue, const Hello* asked) = 0;
    // Errors: the peer's hello, an answer, does not prove what it should, or does not fit `mine`.
    virtual absl::Status CheckAnswer(const Hello& mine, const Hello& theirs) = 0;
    // Runs before any message over that queue pair.
    virtual void OnPeerHello(const Hello& theirs) = 0;
    // All are established.
    virtual void OnLinksUp(const Path& path) = 0;
    // One did not come up, or has ended.
    virtual void OnLinkLost(const verbs::ConnectionEvent& event) = 0;
    // The peer's hello is unreadable, or (kInvalidArgument, kPermissionDenied) no answer to ours.
    virtual void OnBadHello(const absl::Status& status) = 0;
  };

  RailLinks(Context& context, uint32_t rail, User& user) : context_(context), rail_(rail), user_(user) {}

  // `queue`: in the connection. The queue pair outlives the link.
  void Add(uint32_t queue, verbs::QueuePair& queue_pair) { links_.push_back({queue, &queue_pair, nullptr, false}); }

  absl::Status Connect(const verbs::Address& peer);
  absl::Status Accept(verbs::ConnectionRequest& request, const Hello& theirs);

  size_t size() const { return links_.size(); }
  // True if it is of this rail, and neither connected nor asked for.
  bool Misses(uint32_t queue) const;
  bool Has(uint32_t queue_pair_number) const;

 private:
  struct Link {
    uint32_t queue;
    verbs::QueuePair* queue_pair;
    std::unique_ptr<verbs::Connection> connection;
    bool established;
    Hello mine = {};  // as it was sent
  };
  verbs::ConnectOptions OptionsFor(absl::Span<const uint8_t> private_data) const;
  void OnEvent(size_t link, const verbs::ConnectionEvent& event);
  void OnEstablished(Link& link, absl::Span<const uint8_t> private_data);

  Context& context_;
  const uint32_t rail_;
  User& user_;
  bool connecting_ = false;  // otherwise the peer's request carries its hello
  Path path_;
  std::vector<Link> links_;
};

}  // namespace tokamak::transport
