// Bundles are small objects of one holder that are asked for together: those of one task go in one
// request, and their contents come back in one reply.
//
// The asker knows the sizes, and asks for no more than one reply has room for; a larger bundle is
// several requests, all at once. The holder leaves out what it does not have any more, or cannot
// vouch for being the right content: who asked for that goes another way. As anywhere, the asker
// must be entered in the directory as one who may hold them, before it seals its copies.
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
  // Data, and behind it metadata; they are valid during the call. kNotFound: the holder does not
  // have this content. Else what the call ended with.
  using Callback = std::function<void(const absl::StatusOr<absl::Span<const uint8_t>>& contents)>;

  // Both must outlive it. `objects` calls the service kObjects; `deadline` is a call's.
  Bundles(base::EventLoop& loop, transport::Caller& objects, base::Duration deadline)
      : loop_(loop), objects_(objects), deadline_(deadline) {}
  Bundles(const Bundles&) = delete;
  Bundles& operator=(const Bundles&) = delete;
  ~Bundles();

  // Whether a reply has room for an object of `size` bytes at all.
  bool Fits(uint64_t size) const {
    return BringAllAnswer::kBesideObjects + BringAllAnswer::kBesideContents + size <= objects_.max_call_size();
  }

  // Asks the node with an engine at `holder` for an object of `size` bytes that Fits.
  [[nodiscard]] base::Pending Ask(const verbs::Address& holder, const base::ObjectVersion& version, uint64_t size,
                                  Callback done);

  uint64_t sent() const { return sent_; }

  // The answer to a peer's BringAll, of at most `max_size` bytes: `size` says how large what is here is, and
  // nothing where it is not; `contents` is called only for what has room, and has that size, or
  // none where it may not be brought any more.
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
    size_t place = 0;          // in it
    base::ObjectVersion version;
    Callback done;
  };
  struct Bundle {
    Bundles* bundles = nullptr;
    verbs::Address holder;
    uint64_t reply_size = BringAllAnswer::kBesideObjects;
    std::vector<Part*> parts;  // null: dropped
    size_t live = 0;           // of them
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
