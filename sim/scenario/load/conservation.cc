#include "sim/scenario/load/conservation.h"

#include "absl/strings/str_cat.h"

namespace tokamak::sim {
namespace {

struct Sums {
  uint64_t received = 0;
  uint64_t sent = 0;
  uint64_t dropped = 0;
  void Add(const PortCounters& counters) {
    for (const PriorityCounters& one : counters.priorities) {
      received += one.received;
      sent += one.sent;
      dropped += one.dropped;
    }
  }
};

}  // namespace

std::vector<std::string> FindUnaccounted(SwitchedFabric& fabric, bool at_rest) {
  std::vector<std::string> wrong;
  for (uint32_t i = 0; i < fabric.links(); ++i) {
    for (uint32_t end = 0; end < 2; ++end) {
      const Link& link = fabric.link(i, end);
      const LinkCounters& c = link.counters();
      const uint64_t known = c.delivered + c.lost + c.dropped_down + link.in_flight();
      if (c.sent == known) continue;
      wrong.push_back(
          absl::StrCat("cable ", i, ", end ", end, ": ", c.sent, " frames sent, ", known, " accounted for"));
    }
  }
  for (uint32_t i = 0; i < fabric.switches(); ++i) {
    Switch& one = fabric.switch_at(i);
    const std::string& name = fabric.topology().switches[i].name;
    Sums sums;
    for (uint32_t port = 0; port < one.ports(); ++port) sums.Add(one.counters(port));
    const uint64_t known = sums.sent + sums.dropped + one.queued();
    if (sums.received != known) {
      wrong.push_back(absl::StrCat(name, ": ", sums.received, " frames received, ", known, " accounted for"));
    }
    if (at_rest && (one.queued() != 0 || one.buffer().used() != 0 || one.buffer().shared_used() != 0)) {
      wrong.push_back(absl::StrCat(name, ": ", one.buffer().used(), " bytes of its buffer are used at rest"));
    }
  }
  for (uint32_t i = 0; i < fabric.interfaces(); ++i) {
    HostInterface& one = fabric.interface_at(i);
    Sums sums;
    sums.Add(one.counters());
    const uint64_t known = one.delivered() + sums.dropped + one.waiting();
    if (sums.received == known) continue;
    wrong.push_back(absl::StrCat("interface ", i, ": ", sums.received, " frames received, ", known, " accounted for"));
  }
  if (at_rest && fabric.frames_in_use() != 0) {
    wrong.push_back(absl::StrCat(fabric.frames_in_use(), " frames are in use at rest"));
  }
  return wrong;
}

}  // namespace tokamak::sim
