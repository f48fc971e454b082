#include "lib/node/node.h"

#include <utility>

#include "glog/logging.h"
#include "lib/node/cluster_delete.h"
#include "lib/node/remote_get.h"

namespace tokamak::node {

Node::Node(base::EventLoop& loop, store::Store& store, directory::Directory& directory,
           std::vector<EngineLink*> engines, base::Random random, const NodeOptions& options)
    : loop_(loop),
      store_(store),
      directory_(directory),
      options_(options),
      peers_(loop, directory, options.peers),
      pulls_(
          loop, store, directory, peers_, engines, options.id,
          [this](const base::ObjectId& object) { membership_.Recheck(object); }, random, options.pulls),
      object_caller_(*engines.front(), Service::kObjects),
      membership_(loop, store, directory, SelfInfo(engines, store.arena().size(), options), options.membership) {
  for (EngineLink* engine : engines) {
    served_.push_back(std::make_unique<Served>());
    served_.back()->engine = engine;
    served_.back()->owner = store_.NewOwner();
    Serve(*served_.back());
  }
  services_.Register(Service::kObjects, [this](absl::Span<const uint8_t> request, const Services::Reply& reply) {
    HandleObjectCall(request, reply);
  });
}

Node::~Node() {
  for (const auto& served : served_) {
    CHECK(!served->engine->open()) << "the engines' hosts must be dropped before the node: they still use the store";
    served->engine->StopServing();
    store_.DropOwner(served->owner);
  }
}

directory::NodeInfo Node::SelfInfo(const std::vector<EngineLink*>& engines, uint64_t capacity,
                                   const NodeOptions& options) {
  directory::NodeInfo self;
  self.id = options.id;
  self.incarnation = options.incarnation;
  self.device = options.device;
  self.capacity = capacity;
  for (const EngineLink* engine : engines) self.engines.push_back(engine->address().ToString());
  return self;
}

void Node::Start(std::function<void(const absl::Status&)> joined) { membership_.Start(std::move(joined)); }

// What the peers of one engine ask of us.
void Node::Serve(Served& served) {
  EngineLink::Handlers handlers;
  handlers.pin = [this, &served](uint64_t pin, const base::ObjectId& id) { PinFor(served, pin, id); };
  handlers.unpin = [this, &served](uint64_t pin) { UnpinFor(served, pin); };
  handlers.call = [this](absl::Span<const uint8_t> request, Services::Reply reply) {
    services_.Handle(request, std::move(reply));
  };
  served.engine->Serve(std::move(handlers));
}

void Node::PinFor(Served& served, uint64_t pin, const base::ObjectId& id) {
  const absl::StatusOr<store::Location> place = store_.Acquire(id, served.owner);
  if (!place.ok()) {
    membership_.Recheck(id);  // the peer was told that it is here
    return served.engine->Pinned(pin, place.status());
  }
  served.pins.emplace(pin, id);
  ++pins_of_peers_total_;
  served.engine->Pinned(
      pin, transport::PinnedObject{store_.Memory(*place).data(), {place->data_size, place->metadata_size}});
}

void Node::UnpinFor(Served& served, uint64_t pin) {
  const auto found = served.pins.find(pin);
  if (found == served.pins.end()) return;  // it was refused
  CHECK(store_.Release(found->second, served.owner).ok());
  served.pins.erase(found);
}

std::unique_ptr<store::Handle> Node::Get(absl::Span<const base::ObjectId> ids, const GetOptions& options,
                                         store::Owner who, GetCallback done) {
  return std::make_unique<RemoteGet>(loop_, store_, pulls_, ids, options, who, std::move(done));
}

void Node::Delete(const base::ObjectId& id, DeleteCallback done) {
  auto key = std::make_shared<ClusterDelete*>(nullptr);
  auto request = std::make_shared<ClusterDelete>(
      store_, directory_, peers_, object_caller_, options_.id, id, options_.membership.directory_deadline,
      [this, key, done = std::move(done)](absl::StatusOr<DeleteResult> result) {
        const auto ended = deletes_.extract(*key);  // lives until the answer is given
        done(std::move(result));
      });
  *key = request.get();
  deletes_.emplace(*key, request);
  request->Begin();
}

size_t Node::pins_of_peers() const {
  size_t pins = 0;
  for (const auto& served : served_) pins += served->pins.size();
  return pins;
}

void Node::HandleObjectCall(absl::Span<const uint8_t> request, const Services::Reply& reply) {
  reply(ClusterDelete::Answer(request, store_, membership_));
}

}  // namespace tokamak::node
