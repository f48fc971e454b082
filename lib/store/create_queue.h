// CreateQueue holds the creates that wait for room, in order of arrival.
//
// Later ones that fit may overtake the first until their bytes equal its own size: small creates
// cannot starve a large one.
// Law: a callback runs at most once, from a task; a waiting create holds no memory.
// Thread rule: the store's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "lib/base/answers.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/base/text/object_name.h"
#include "lib/store/types.h"

namespace tokamak::store {

class Store;

struct CreateRequest {
  base::ObjectId id;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  Owner who{};
  base::ObjectName name = {};  // kept with the object

  uint64_t total_size() const { return data_size + metadata_size; }
  Location place() const { return {0, data_size, metadata_size, base::kNoGeneration}; }
};

using CreateCallback = std::function<void(absl::StatusOr<Location> location)>;

class CreateQueue final {
 public:
  // Waiting creates of one owner; further ones are refused.
  static constexpr size_t kMaxWaitingCreates = 256;

  // Both must outlive it.
  CreateQueue(Store& store, base::EventLoop& loop) : store_(store), loop_(loop), refusals_(loop) {}
  CreateQueue(const CreateQueue&) = delete;
  CreateQueue& operator=(const CreateQueue&) = delete;

  // See Store::CreateLater.
  base::Pending Add(const CreateRequest& request, base::Time deadline, CreateCallback callback);

  // Memory was freed, or became evictable.
  void RoomAppeared() {
    if (!waiting_.empty()) ServeSoon();
  }

  // Returns true if a create of `size` bytes may go before the waiting ones; Overtook records it.
  bool MayOvertake(uint64_t size) const;
  void Overtook(uint64_t size) { overtaken_ += waiting_.empty() ? 0 : size; }

  // Ends all creates of `who` without calling back.
  void DropOwner(Owner who);

  size_t size() const { return waiting_.size(); }

 private:
  // A failed search has looked at all blocks. At most this many fail in one task, and the next
  // pauses for each kBlocksPerPause blocks or part of them.
  static constexpr int kMaxSearches = 4;
  static constexpr base::Duration kPause = base::Milliseconds(1);
  static constexpr int64_t kBlocksPerPause = 4096;

  class Waiting;
  absl::Status Check(const CreateRequest& request) const;
  struct Listed {
    base::Link<Listed> link;
  };
  using List = base::IntrusiveList<Listed, &Listed::link>;

  void ServeSoon();
  void Pause();
  void Serve();
  void Remove(Waiting& one);

  Store& store_;
  base::EventLoop& loop_;
  base::Answers refusals_;
  List waiting_;
  absl::btree_map<Owner, size_t> waiting_of_;
  Listed* next_ = nullptr;  // next for Serve
  uint64_t overtaken_ = 0;  // bytes that overtook the first
  base::Time not_before_;
  base::Timer turn_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::store
