// ClientHolder makes the test objects through the other node's socket, as any program of its
// machine would.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cli/tune/holder.h"
#include "tokamak/client.h"

namespace tokamak::cli::tune {

// Free or evictable, in bytes.
absl::StatusOr<uint64_t> RoomOf(Client& client);

class ClientHolder final : public Holder {
 public:
  // `client` must outlive it.
  explicit ClientHolder(Client& client) : client_(client) {}

  absl::Status Make(absl::Span<const TestObject> objects) override;
  const std::string& node() const override { return client_.node(); }
  uint64_t capacity() const override { return client_.capacity(); }
  absl::StatusOr<uint64_t> Room() override { return RoomOf(client_); }

 private:
  Client& client_;
  std::vector<uint8_t> bytes_;  // a prefix of each object
};

}  // namespace tokamak::cli::tune
