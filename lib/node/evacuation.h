// Evacuation hands what this node keeps over to other nodes, before it leaves: each object that was
// put here gets a copy elsewhere that is kept as the original was, and not evicted like others.
//
// A node is asked to keep an object; it pulls it, as for a program of its own, and answers when it
// has it. The nodes are asked in turns, kAtOnce objects at a time; one that has no room is followed
// by the next. What nobody took is counted, and stays here. What is put meanwhile goes the same
// way: it ends when all that is here was handed over or counted.
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/node/peers.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"

namespace tokamak::node {

// So far, or at the end. Bytes are data and metadata.
struct EvacuationReport {
  uint64_t objects = 0;  // handed over
  uint64_t bytes = 0;
  uint64_t left_objects = 0;  // that nobody took, or that there was no time for
  uint64_t left_bytes = 0;
  absl::Status trouble;  // the last
};

class Evacuation final : public base::Handle {
 public:
  static constexpr size_t kAtOnce = 8;

  using Callback = std::function<void(const EvacuationReport&)>;

  // What it works with. All references must outlive it.
  struct Services {
    base::EventLoop& loop;
    store::Store& store;
    directory::Directory& directory;
    Peers& peers;
    transport::Caller& holders;  // of the service kObjects
    directory::NodeId self;
    base::Duration deadline;  // of a question to the directory
  };

  // Starts at once, and ends after `limit` at the latest. `progress` runs every second, `done`
  // once, later.
  Evacuation(const Services& services, base::Duration limit, Callback progress, Callback done);

  // A request to keep an object, and the answer to it. Nothing: no request that a peer would send.
  struct Request {
    base::ObjectVersion version;
    uint64_t data_size = 0;
    uint64_t metadata_size = 0;
  };
  static std::vector<uint8_t> EncodeRequest(const Request& request);
  static absl::optional<Request> DecodeRequest(absl::Span<const uint8_t> request);
  static std::vector<uint8_t> EncodeAnswer(bool kept) { return {static_cast<uint8_t>(kept ? 1 : 0)}; }

 private:
  // An object on its way to another node.
  struct Moving {
    Request request;
    size_t asked = 0;  // nodes
    base::Pending call;
    base::Timer retry;
  };

  void Known(const absl::StatusOr<std::vector<directory::NodeInfo>>& nodes);
  void Put(absl::Span<const store::Event> events);
  void Fill();
  void ListNextPage();
  absl::optional<Request> NextObject();
  void Ask(uint64_t number);
  void Answered(uint64_t number, const absl::StatusOr<absl::Span<const uint8_t>>& reply);
  void Leave(const Request& request);
  void Report();
  void Finish();

  const Services services_;
  const base::Time limit_;
  const Callback progress_;
  Callback done_;
  EvacuationReport report_;
  std::vector<directory::NodeId> nodes_;
  size_t next_node_ = 0;
  std::vector<Request> page_;  // the last is next
  absl::optional<base::ObjectId> listed_to_;
  bool listed_ = false;
  bool asking_ = false;                             // the nodes and their addresses are known
  base::Pending sealed_;                            // hears of what is put meanwhile
  std::deque<base::ObjectVersion> put_;             // meanwhile
  absl::flat_hash_set<base::ObjectVersion> taken_;  // out of the list or put_: what was put meanwhile may be in both
  std::map<uint64_t, Moving> moving_;
  uint64_t last_number_ = 0;
  base::Pending question_;
  base::Timer report_timer_;
  base::Timer end_;
};

}  // namespace tokamak::node
