#include "lib/node/engines/open_endpoint.h"

#include "absl/strings/str_cat.h"
#include "lib/node/engines/engine.h"

namespace tokamak::node {

absl::StatusOr<std::unique_ptr<transport::Endpoint>> OpenEndpoint(base::EventLoop& loop, transport::Source& source,
                                                                  const EndpointParts& parts) {
  if (parts.options.max_transfers > kMaxEnginePulls) {
    return absl::InvalidArgumentError(
        absl::StrCat("an engine serves and pulls at most ", kMaxEnginePulls, " transfers at once"));
  }
  auto endpoint = transport::Endpoint::Open(loop, parts.rails, source, parts.random, parts.trace, parts.options);
  if (!endpoint.ok()) return endpoint.status();
  if (absl::Status status = (*endpoint)->Listen(parts.listen); !status.ok()) return status;
  return endpoint;
}

}  // namespace tokamak::node
