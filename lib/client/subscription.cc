#include "tokamak/subscription.h"

#include <utility>

#include "lib/client/convert.h"
#include "lib/client/daemon_connection.h"
#include "lib/client/deadline.h"

namespace tokamak {

Result<Events> Subscription::Next(Timeout timeout, const Interrupt* interrupt) {
  auto events = connection_->NextEvents(client::Deadline::After(client::FromPublic(timeout)), interrupt);
  if (!events.ok()) return client::ToPublic(events.status());
  return client::ToPublic(*std::move(events));
}

int Subscription::descriptor() const { return connection_->descriptor(); }

}  // namespace tokamak
