// RemoteGet is one get of a program: it waits on the store for all of its objects while the missing
// ones are pulled.
//
// Thread rule: the control loop.
#pragma once

#include <memory>

#include "absl/container/inlined_vector.h"
#include "lib/node/node.h"

namespace tokamak::node {

class RemoteGet final : public base::Handle {
 public:
  // References must outlive it. `done` runs once, later. Counts its duration in `latency` per
  // object found.
  RemoteGet(base::EventLoop& loop, store::Store& store, PullTable& pulls, GetLatency& latency,
            absl::Span<const base::ObjectId> ids, const GetOptions& options, store::Owner who, Node::GetCallback done);

 private:
  template <typename T>
  using Few = absl::InlinedVector<T, store::kFewObjects>;

  void Pull(size_t index);
  void Pulled(size_t index, const absl::Status& status);
  void AnswerAt(base::Time deadline);
  void Answer(absl::Span<const store::GetEntry> entries);
  void Count(size_t index, const store::Location& location) const;
  absl::Status WhyMissing(size_t index) const;

  base::EventLoop& loop_;
  store::Store& store_;
  PullTable& pulls_;
  GetLatency& latency_;
  const base::Time began_;
  const Few<base::ObjectId> ids_;
  const GetOptions options_;
  const store::Owner who_;
  Node::GetCallback done_;
  Few<std::unique_ptr<PullTable::Waiter>> waiters_;  // nullptr: no pull
  Few<absl::Status> failures_;                       // by index
  size_t pulling_ = 0;
  bool failed_ = false;
  std::unique_ptr<base::Handle> get_;
};

}  // namespace tokamak::node
