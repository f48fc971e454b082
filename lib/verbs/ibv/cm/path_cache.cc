#include "lib/verbs/ibv/cm/path_cache.h"

#include <arpa/inet.h>

#include <algorithm>

namespace tokamak::verbs::ibv {
namespace {

// "Exactly": the two highest bits of a path record's selector.
constexpr uint8_t kExactly = 2 << 6;

uint8_t Exactly(uint8_t value) { return static_cast<uint8_t>(kExactly | (value & 0x3f)); }

}  // namespace

ibv_path_data ToPathData(const ibv_sa_path_rec& path) {
  ibv_path_data data{};
  data.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
  ibv_path_record& record = data.path;
  record.dgid = path.dgid;
  record.sgid = path.sgid;
  record.dlid = path.dlid;
  record.slid = path.slid;
  record.flowlabel_hoplimit = htonl(ntohl(path.flow_label) << 8 | path.hop_limit);
  record.tclass = path.traffic_class;
  record.reversible_numpath = 1 << 7 | 1;
  record.pkey = path.pkey;
  record.qosclass_sl = htons(path.sl & 0xf);
  record.mtu = Exactly(path.mtu);
  record.rate = Exactly(path.rate);
  record.packetlifetime = Exactly(path.packet_life_time);
  return data;
}

bool ChangesPaths(const ibv_async_event& event, uint8_t port) {
  switch (event.event_type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
      return event.element.port_num == port;
    default:
      return false;
  }
}

std::optional<ibv_path_data> PathCache::Find(const Address& peer) {
  const base::MutexLock lock(mutex_);
  const auto it = paths_.find(peer.ip);
  if (it == paths_.end()) return std::nullopt;
  if (!IsOld(it->second)) return it->second.data;
  paths_.erase(it);
  return std::nullopt;
}

void PathCache::Keep(const Address& peer, const ibv_path_data& path) {
  const base::MutexLock lock(mutex_);
  paths_[peer.ip] = {path, clock_()};
  if (paths_.size() <= kMaxPaths) return;
  paths_.erase(std::min_element(paths_.begin(), paths_.end(),
                                [](const auto& a, const auto& b) { return a.second.kept < b.second.kept; }));
}

void PathCache::Forget(const Address& peer) {
  const base::MutexLock lock(mutex_);
  paths_.erase(peer.ip);
}

void PathCache::Clear() {
  const base::MutexLock lock(mutex_);
  paths_.clear();
}

bool PathCache::IsOld(const Path& path) const {
  return clock_() - path.kept > static_cast<uint64_t>(kLifetime.nanoseconds());
}

}  // namespace tokamak::verbs::ibv
