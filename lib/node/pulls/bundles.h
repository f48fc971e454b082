// Bundles asks for several small objects of one holder together: one request for those of one task,
// and one reply with their contents.
//
// A bundle larger than one reply is several requests, at once. The holder leaves out objects that
// it lacks or cannot vouch for; they are pulled another way. The asker seals only once entered in
// the directory. Bound: BringAllRequest::kMaxObjects of one request. Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/base/time.h"
#include "lib/node/calls/object_messages.h"
#include "lib/transport/caller.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

class Bundles final {
 public:
  // Data, then metadata; valid during the call. kNotFound: not at the holder. Else the call's
  // error.
  using Callback = std::function<void(const absl::StatusOr<absl::Span<const uint8_t>>& contents)>;

  // Both must outlive it. `objects` calls the service kObjects.
  Bundles(base::EventLoop& loop, transport::Caller& objects, base::Duration deadline)
      : loop_(loop), objects_(objects), deadline_(deadline) {}
  Bundles(const Bundles&) = delete;
  Bundles& operator=(const Bundles&) = delete;
  ~Bundles();

  bool Fits(uint64_t size) const {
    return BringAllAnswer::kBesideObjects + BringAllAnswer::kBesideContents + size <= objects_.max_call_size();
  }

  // Requires a `size` that Fits; `holder` is an engine.
  [[nodiscard]] base::Pending Ask(const verbs::Address& holder, const base::ObjectVersion& version, uint64_t size,
                                  Callback done);

  uint64_t sent() const { return sent_; }

  // Returns the answer to a peer's BringAll, of at most `max_size` bytes. `size` returns nullopt
  // for an object not here; `contents`, called only for objects with room, that many bytes, or none
  // to leave it out.
  using Size = std::function<std::optional<uint64_t>(const base::ObjectVersion&)>;
  using Contents = std::function<absl::Span<const uint8_t>(const base::ObjectVersion&)>;
  static std::vector<uint8_t> Answer(absl::Span<const base::ObjectVersion> versions, size_t max_size, const Size& size,
                                     const Contents& contents);

 private:
  struct Bundle;
  struct Part final : base::Handle {
    ~Part() override;

    Bundle* bundle = nullptr;  // null when it was answered
    size_t place = 0;
    base::ObjectVersion version;
    Callback done;
  };
  struct Bundle {
    Bundles* bundles = nullptr;
    verbs::Address holder;
    uint64_t reply_size = BringAllAnswer::kBesideObjects;
    std::vector<Part*> parts;  // null: dropped
    size_t live = 0;           // not dropped
    base::Pending under_way;   // null: not sent yet
  };

  Bundle& Gathering(const verbs::Address& holder, uint64_t size);
  void SendAll();
  static void Drop(Part& part);
  std::unique_ptr<Bundle> Take(const Bundle& bundle);
  static void OnReply(Bundle& bundle, const absl::StatusOr<absl::Span<const uint8_t>>& reply);

  base::EventLoop& loop_;
  transport::Caller& objects_;
  const base::Duration deadline_;
  std::vector<std::unique_ptr<Bundle>> bundles_;
  uint64_t sent_ = 0;  // requests
  base::Timer sending_;
};

}  // namespace tokamak::node
