// DirectoryServer answers other nodes' directory requests from a directory of this node.
//
// Requests are untrusted: one that makes no sense gets kInvalidArgument, and bounds are the directory's own.
// Thread rule: the directory's loop.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "lib/base/codec.h"
#include "lib/directory/directory.h"
#include "lib/directory/remote/messages.h"

namespace tokamak::directory {

class DirectoryServer final {
 public:
  using Reply = std::function<void(absl::Span<const uint8_t>)>;

  // `directory` must outlive it and what it still answers. Replies have at most `max_reply` bytes.
  DirectoryServer(Directory& directory, size_t max_reply) : directory_(directory), max_reply_(max_reply) {}

  // `reply` runs once, later; `request` is looked at during the call.
  void Handle(absl::Span<const uint8_t> request, Reply reply);

 private:
  void HandleJoin(base::Reader& reader, Reply reply);
  void HandleLocate(base::Reader& reader, Reply reply);
  void HandleNodes(base::Reader& reader, Reply reply);

  Directory& directory_;
  const size_t max_reply_;
};

}  // namespace tokamak::directory
