// Decode asks a prefill on another node for the key-value cache of a prompt, and decodes with each
// layer as soon as that is here, while later ones are on their way or still computed.
//
// Several gets are under way, in the order of the layers; blocks are read in place in this node's
// store, which has to have room for all of them, since every further token needs every layer.
//
// Moments, N being the request and L the layer: "asked N", "used N L" (for the first token), "done
// N". Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/kv_cache/prompt.h"
#include "examples/moments.h"
#include "examples/units.h"
#include "tokamak/client.h"
#include "tokamak/status.h"

namespace tokamak::example {

struct DecodeOptions {
  static constexpr uint32_t kMaxGets = 64;

  std::string name;
  uint64_t number = 0;  // of the request
  Prompt prompt;
  uint32_t tokens = 4;             // to decode
  uint32_t gets_under_way = 4;     // at most kMaxGets
  Seconds deadline = Seconds(30);  // for the first token
  OnMoment on_moment;
};

// Seconds since the prompt was put.
struct DecodeReport {
  std::vector<uint64_t> tokens;
  std::vector<double> arrived;  // of each layer: it was here
  std::vector<double> used;     // the first token had gone through it
  double first_token = 0;
  double all_tokens = 0;
};

// Decodes one prompt. Afterwards, whatever comes back, nothing of the request is in any store that
// can be reached. kAlreadyExists: there is such a request. kDeadlineExceeded: a layer did not come
// in time.
Result<DecodeReport> Decode(Client& client, const DecodeOptions& options);

}  // namespace tokamak::example
