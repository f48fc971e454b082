// AskedHolder has a `tok tune --serve` on another machine make the test objects, see ask.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/cli/common/undo.h"
#include "lib/cli/tune/holder.h"
#include "tokamak/client.h"

namespace tokamak::cli::tune {

class AskedHolder final : public Holder {
 public:
  // Calls `node`, of the cluster; `undo` takes the call back. `client`, the pulling node's, must
  // outlive it.
  static absl::StatusOr<AskedHolder> Call(Client& client, const std::string& node, uint64_t session, Undo& undo);
  AskedHolder(AskedHolder&& other) noexcept;
  AskedHolder& operator=(AskedHolder&&) = delete;
  // Ends the other side.
  ~AskedHolder() override;

  absl::Status Make(absl::Span<const TestObject> objects) override;
  const std::string& node() const override { return node_; }
  uint64_t capacity() const override { return capacity_; }
  // All: the other side reports a lack of room.
  absl::StatusOr<uint64_t> Room() override { return capacity_; }

 private:
  AskedHolder(Client& client, std::string node, uint64_t capacity, uint64_t session)
      : client_(&client), node_(std::move(node)), capacity_(capacity), session_(session) {}
  absl::Status Ask(absl::Span<const TestObject> objects);

  Client* client_;  // null: moved from
  std::string node_;
  uint64_t capacity_;
  uint64_t session_;
  uint64_t asks_ = 0;
  bool answers_ = false;  // the last ask was met
};

}  // namespace tokamak::cli::tune
