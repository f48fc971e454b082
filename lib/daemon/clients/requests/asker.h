// Asker is a program as its requests see it: the node, its owner in the store, and the way back for
// answers.
//
// Law: a request with id 0 is not answered. Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/base/trace.h"
#include "lib/client/protocol/frame.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/metrics/node_snapshot.h"
#include "lib/node/node.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

struct SessionContext {
  base::EventLoop& loop;
  node::Node& node;
  uint64_t arena_size = 0;
  std::string device;
  std::function<NodeSnapshot()> snapshot;
  // Records each get; may be null.
  base::Trace* trace = nullptr;
  mutable uint64_t gets_traced = 0;
  // Objects watched in the directory by all sessions' Waits.
  mutable size_t watched = 0;
};

// The arena's descriptors sent with a welcome.
enum class Descriptors : uint8_t { kNone, kRead, kReadAndCreate };

class Asker final {
 public:
  using Send = std::function<void(std::vector<uint8_t> frame, Descriptors descriptors)>;

  // `context` must outlive it. `program`: for memory accounts.
  Asker(const SessionContext& context, const std::string& program, Send send)
      : context_(context), send_(std::move(send)), owner_(context.node.store().NewOwner(program)) {}
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  const SessionContext& context() const { return context_; }
  base::EventLoop& loop() const { return context_.loop; }
  node::Node& node() const { return context_.node; }
  store::Store& store() const { return context_.node.store(); }
  store::Owner owner() const { return owner_; }

  void SendFrame(std::vector<uint8_t> frame, Descriptors descriptors) const { send_(std::move(frame), descriptors); }

  template <typename Reply>
  void Answer(const client::Header& header, const Reply& reply) const {
    if (header.request_id != 0) SendFrame(client::Encode(header.request_id, reply), Descriptors::kNone);
  }
  // Answers with an error, or without a body.
  void AnswerStatus(const client::Header& header, const absl::Status& status) const;

 private:
  const SessionContext& context_;
  const Send send_;
  const store::Owner owner_;
};

}  // namespace tokamak::daemon
