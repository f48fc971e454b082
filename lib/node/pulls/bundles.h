// Bundles asks for several small objects of one holder together: those of one task go in one
// request, and their contents come back in one reply.
//
// The asker knows the sizes and asks for no more than one reply has room for; a larger bundle is
// several requests, all at once. The holder leaves out objects that it no longer has, or whose
// content it cannot vouch for: those are pulled another way. As anywhere, the directory must have
// entered the asker as one who may hold them before it seals its copies.
// Bound: BringAllRequest::kMaxObjects of one request. Thread rule: the node's control loop.
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
  // Data, then metadata; valid during the call. kNotFound: the holder does not have this content.
  // Else the error that the call ended with.
  using Callback = std::function<void(const absl::StatusOr<absl::Span<const uint8_t>>& contents)>;

  // Both must outlive it. `objects` calls the service kObjects; `deadline` is of one call.
  Bundles(base::EventLoop& loop, transport::Caller& objects, base::Duration deadline)
      : loop_(loop), objects_(objects), deadline_(deadline) {}
  Bundles(const Bundles&) = delete;
  Bundles& operator=(const Bundles&) = delete;
  ~Bundles();

  // Returns true if a reply has room for an object of `size` bytes.
  bool Fits(uint64_t size) const {
    return BringAllAnswer::kBesideObjects + BringAllAnswer::kBesideContents + size <= objects_.max_call_size();
  }

  // Asks the node with an engine at `holder` for an object of `size` bytes that Fits.
  [[nodiscard]] base::Pending Ask(const verbs::Address& holder, const base::ObjectVersion& version, uint64_t size,
                                  Callback done);

  uint64_t sent() const { return sent_; }

  // Returns the answer to a peer's BringAll, of at most `max_size` bytes. `size` returns an
  // object's size, nullopt if it is not here. `contents` is called only for objects that have room,
  // and returns that size, or nothing if the object may no longer be brought.
  using Size = std::function<std::optional<uint64_t>(const base::ObjectVersion&)>;
  using Contents = std::function<absl::Span<const uint8_t>(const base::ObjectVersion&)>;
  static std::vector<uint8_t> Answer(absl::Span<const base::ObjectVersion> versions, size_t max_size, const Size& size,
                                     const Contents& contents);

 private:
  struct Bundle;
  // One object of a bundle.
  struct Part final : base::Handle {
    ~Part() override;

    Bundle* bundle = nullptr;  // null when it was answered
    size_t place = 0;          // in the bundle
    base::ObjectVersion version;
    Callback done;
  };
  struct Bundle {
    Bundles* bundles = nullptr;
    verbs::Address holder;
    uint64_t reply_size = BringAllAnswer::kBesideObjects;
    std::vector<Part*> parts;  // null: dropped
    size_t live = 0;           // parts that are not dropped
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
