// Prefill computes the key-value cache of prompts, and puts each layer's block into its node's
// store when it is computed, while the next one is.
//
// A block is computed in the object's own memory: from there it is pulled, without a copy here.
//
// Moments, N being the request and L the layer: "prompt N", "layer N L" (before it is computed),
// "put N L", "put all N" (and the prompt is waited out), "deleted N". Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "examples/kv_cache/prompt.h"
#include "examples/moments.h"
#include "examples/units.h"
#include "tokamak/client.h"
#include "tokamak/status.h"

namespace tokamak::example {

struct PrefillOptions {
  std::string name;
  Seconds idle = Seconds(600);     // given up when no prompt comes for this long
  Seconds deadline = Seconds(30);  // for the decoder to be done once all layers are put, and for room
  OnMoment on_moment;
};

class Prefill final {
 public:
  // `client` outlives this.
  Prefill(Client& client, const PrefillOptions& options) : client_(client), options_(options) {}

  // Serves requests one after the other, up to one that says that it is the last. A request that
  // its decoder has given up is left, and the next one waited for. kDeadlineExceeded: no prompt
  // came, or a decoder was not done in time; its layers are deleted.
  Status Serve();

  uint64_t served() const { return served_; }        // requests whose layers were all put
  uint64_t cancelled() const { return cancelled_; }  // whose prompt was gone before

 private:
  Status ServeOne(const RequestNames& names, const Prompt& prompt);
  Status PutAsComputed(const RequestNames& names, const Prompt& prompt);
  Status PutTogether(const RequestNames& names, const Prompt& prompt);
  Result<MutableBuffer> Create(const RequestNames& names, const Prompt& prompt, uint32_t layer);
  Status Put(const RequestNames& names, MutableBuffer block, uint32_t layer);
  Status StillWanted(const RequestNames& names);
  Status AwaitDone(const RequestNames& names, Subscription& events);
  Status DeleteLayers(const RequestNames& names, const Prompt& prompt);
  void Tell(const std::string& moment) const;

  Client& client_;
  const PrefillOptions options_;
  uint64_t number_ = 0;
  uint64_t served_ = 0;
  uint64_t cancelled_ = 0;
};

}  // namespace tokamak::example
