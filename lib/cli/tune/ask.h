// The protocol of two `tok tune` on different machines: objects of the store, as each reaches only
// its own machine's node.
//
//  puller                                          holder (tok tune --serve)
//    puts "tok tune call NODE", a session -------> gets it
//    puts ask 1: the objects it wants -----------> gets it, puts the objects
//    waits until they exist, pulls and deletes them
//    puts ask 2 ...
//    puts an ask for nothing --------------------> ends
//
// Random sessions keep killed runs apart. The puller deletes calls and asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/cli/tune/holder.h"
#include "tokamak/object_id.h"

namespace tokamak::cli::tune {

constexpr size_t kMaxAsked = 256;

ObjectId CallId(const std::string& node);
ObjectId AskId(uint64_t session, uint64_t number);

std::string EncodeSession(uint64_t session);
absl::StatusOr<uint64_t> DecodeSession(absl::string_view text);

// A line each: id and size.
std::string EncodeAsk(absl::Span<const TestObject> objects);
// kInvalidArgument: malformed, too many, or beyond `most_bytes` together.
absl::StatusOr<std::vector<TestObject>> DecodeAsk(absl::string_view text, uint64_t most_bytes);

}  // namespace tokamak::cli::tune
