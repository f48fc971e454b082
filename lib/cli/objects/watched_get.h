// WatchedGet gets an object for a person who looks on: it draws what has come of it, and gives up
// only when nothing more comes. Where nothing has come for a second, it says on a terminal what it
// waits for.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tokamak/buffer.h"
#include "tokamak/client.h"
#include "tokamak/object_id.h"
#include "tokamak/timeout.h"
#include "tokamak/types.h"

namespace tokamak::cli {

// `name` stands before the bar. Fails as Client::Get does once nothing has come for `timeout`: of
// that it knows to a tenth.
absl::StatusOr<Buffer> WatchedGet(Client& client, const std::string& name, const ObjectId& id, Timeout timeout,
                                  const GetOptions& options);

}  // namespace tokamak::cli
