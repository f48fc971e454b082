// WatchedGet gets an object for a person: it draws the progress, and gives up only when progress
// stops. A terminal shows the reason after a second.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tokamak/buffer.h"
#include "tokamak/client.h"
#include "tokamak/object_id.h"
#include "tokamak/timeout.h"
#include "tokamak/types.h"

namespace tokamak::cli {

// `name` stands before the bar. Fails as Client::Get once nothing has come for `timeout`, to a
// tenth of it.
absl::StatusOr<Buffer> WatchedGet(Client& client, const std::string& name, const ObjectId& id, Timeout timeout,
                                  const GetOptions& options);

}  // namespace tokamak::cli
