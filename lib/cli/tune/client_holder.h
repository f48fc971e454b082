// ClientHolder makes the test objects through the other node's socket, as any program of its
// machine would.
#pragma once

#include <string>
#include <vector>

#include "lib/cli/tune/holder.h"
#include "tokamak/client.h"

namespace tokamak::cli::tune {

class ClientHolder final : public Holder {
 public:
  // `client` must outlive it.
  explicit ClientHolder(Client& client) : client_(client) {}

  absl::Status Make(absl::Span<const TestObject> objects) override;
  const std::string& node() const override { return client_.node(); }
  uint64_t capacity() const override { return client_.capacity(); }

 private:
  Client& client_;
  std::vector<uint8_t> bytes_;  // that all objects begin with
};

}  // namespace tokamak::cli::tune
