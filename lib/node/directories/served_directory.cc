#include "lib/node/directories/served_directory.h"

#include <utility>

namespace tokamak::node {

void ServedDirectory::Serve(Node& node) {
  server_.BringFrom(node.options().id,
                    [&node](const base::ObjectVersion& version) { return node.ContentsForPeer(version); });
  node.services().Register(Service::kDirectory, [this](absl::Span<const uint8_t> request, Services::Reply reply) {
    return server_.Handle(request, std::move(reply));
  });
}

}  // namespace tokamak::node
