// DirectoryServer answers other nodes' directory requests from this node's own directory.
//
// Requests are untrusted: one that makes no sense gets kInvalidArgument, and bounds are the directory's own.
// Thread rule: the directory's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/types/span.h"
#include "lib/base/codec.h"
#include "lib/directory/local.h"
#include "lib/directory/remote/messages.h"

namespace tokamak::directory {

class DirectoryServer final {
 public:
  using Reply = std::function<void(absl::Span<const uint8_t>)>;

  // `directory` must outlive it. Replies have at most `max_reply` bytes (at least kMinReply).
  static constexpr size_t kMinReply = 512;
  DirectoryServer(LocalDirectory& directory, size_t max_reply) : directory_(directory), max_reply_(max_reply) {}
  DirectoryServer(const DirectoryServer&) = delete;
  DirectoryServer& operator=(const DirectoryServer&) = delete;

  // `reply` runs once: inside the call for a request that makes no sense, else later. `request` is looked at during the call.
  void Handle(absl::Span<const uint8_t> request, Reply reply);

 private:
  void HandleJoin(base::Reader& reader, Reply reply);
  void HandleLocate(base::Reader& reader, Reply reply);
  void HandleLocateAny(base::Reader& reader, Reply reply);
  void HandleNodes(base::Reader& reader, Reply reply);
  void WriteObject(base::Writer& writer, ObjectInfo object) const;
  void ReplyFound(const Reply& reply, const absl::StatusOr<LocalDirectory::Found>& found) const;

  LocalDirectory& directory_;
  const size_t max_reply_;
  uint64_t last_wait_ = 0;
  std::map<uint64_t, std::unique_ptr<AnyWait>> waits_;
};

}  // namespace tokamak::directory
