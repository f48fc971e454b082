#include "sim/emulation/fabric_totals.h"

namespace tokamak::sim {
namespace {

void AddPort(const PortCounters& port, FabricTotals* totals) {
  for (const PriorityCounters& priority : port.priorities) {
    totals->marked += priority.marked;
    totals->dropped += priority.dropped;
    totals->pauses += priority.pauses_sent;
  }
}

}  // namespace

FabricTotals FabricTotals::Of(SwitchedFabric& fabric) {
  FabricTotals totals;
  for (uint32_t cable = 0; cable < fabric.links(); ++cable) {
    for (uint32_t end = 0; end < 2; ++end) {
      const LinkCounters& link = fabric.link(cable, end).counters();
      totals.lost += link.lost;
      totals.corrupted += link.corrupted;
      totals.dropped += link.dropped_down;
    }
  }
  for (uint32_t i = 0; i < fabric.switches(); ++i) {
    Switch& one = fabric.switch_at(i);
    for (uint32_t port = 0; port < one.ports(); ++port) AddPort(one.counters(port), &totals);
  }
  for (uint32_t i = 0; i < fabric.interfaces(); ++i) AddPort(fabric.interface_at(i).counters(), &totals);
  return totals;
}

}  // namespace tokamak::sim
