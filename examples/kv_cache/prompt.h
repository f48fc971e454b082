// Prompt is what a decoder asks a prefill for, and the names of what comes of it.
//
//   NAME/N/prompt      put by the decoder; N counts its requests from 0
//   NAME/N/layer/L     put by the prefill: the block of layer L
//
// The request lives as long as its prompt does: the decoder deletes it when it is done or gives up,
// and either side that finds it gone deletes the layers. So whichever of the two is killed, the
// other leaves nothing behind.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "examples/kv_cache/cache_model.h"
#include "examples/object_name.h"
#include "tokamak/status.h"

namespace tokamak::example {

struct Prompt {
  static constexpr uint64_t kMaxBytes = 4096;  // as text

  CacheShape shape;
  uint64_t seed = 0;      // stands for the text
  bool by_layers = true;  // each layer is put as it is computed; else all when the last one is
  bool last = true;       // of this name: the prefill may end

  std::string ToJson() const;
  // kInvalidArgument: it is no prompt, or the shape is out of bounds; the text begins with `what`.
  static Result<Prompt> Parse(absl::string_view text, absl::string_view what);
};

class RequestNames final {
 public:
  RequestNames(const std::string& name, uint64_t number) : begin_(absl::StrCat(name, "/", number, "/")) {}

  ObjectName Prompt() const { return ObjectName(begin_ + "prompt"); }
  ObjectName Layer(uint32_t layer) const { return ObjectName(absl::StrCat(begin_, "layer/", layer)); }

 private:
  std::string begin_;
};

}  // namespace tokamak::example
