// ServedDirectory is a node's own directory, which it serves to the others: small objects that this
// node holds come with the answer.
//
// Thread rule: the control loop.
#pragma once

#include "lib/directory/local.h"
#include "lib/directory/remote/server.h"
#include "lib/node/machine.h"

namespace tokamak::node {

class ServedDirectory final : public DirectoryHost {
 public:
  // `loop` must outlive it. Replies have at most `max_reply` bytes.
  ServedDirectory(base::EventLoop& loop, const directory::LocalOptions& options, size_t max_reply)
      : local_(loop, options), server_(loop, local_, max_reply) {}

  directory::LocalDirectory& local() { return local_; }
  directory::Directory& directory() override { return local_; }
  void Serve(Node& node) override;

 private:
  directory::LocalDirectory local_;
  directory::DirectoryServer server_;
};

}  // namespace tokamak::node
