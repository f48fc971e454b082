#include "lib/node/directories/served_directory.h"

#include <utility>

namespace tokamak::node {

static_assert(static_cast<uint8_t>(directory::RequestKind::kJoin) == 1 &&
                  static_cast<uint8_t>(directory::RequestKind::kLeave) == 2 &&
                  static_cast<uint8_t>(directory::RequestKind::kUpdate) == kLastKindOfOwnLife,
              "call_router.h knows a node's words of itself by their kinds");

void ServedDirectory::Serve(Node& node) {
  server_.BringFrom(node.options().id,
                    [&node](const base::ObjectVersion& version) { return node.ContentsForPeer(version); });
  node.call_router().Register(Service::kDirectory, [this](absl::Span<const uint8_t> request, CallRouter::Reply reply) {
    return server_.Handle(request, std::move(reply));
  });
}

}  // namespace tokamak::node
