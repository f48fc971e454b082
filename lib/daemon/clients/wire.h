// Converts the store's and the directory's types to those of the client protocol.
#pragma once

#include <string>

#include "lib/base/time.h"
#include "lib/client/protocol/messages.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster_view.h"
#include "lib/store/types.h"

namespace tokamak::daemon {

client::Location ToWire(const store::Location& place);
client::ObjectEntry ToWire(const store::StoredObject& info, base::Time now);
client::EventEntry ToWire(const store::Event& event);

// Cuts texts too long for the protocol.
client::NodeEntry ToWire(const directory::NodeInfo& info, bool is_this);
client::ViewedEntry ToWire(const node::ClusterView::Entry& entry, bool is_this);

}  // namespace tokamak::daemon
