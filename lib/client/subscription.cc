#include "tokamak/subscription.h"

#include "lib/client/connection.h"
#include "lib/client/convert.h"
#include "lib/client/deadline.h"

namespace tokamak {

Result<Events> Subscription::Next(Timeout timeout) {
  const auto events = connection_->NextEvents(client::Deadline::After(client::FromPublic(timeout)));
  if (!events.ok()) return client::ToPublic(events.status());
  return client::ToPublic(*events);
}

}  // namespace tokamak
