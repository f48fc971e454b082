#include "sim/fabric/link/observer.h"

namespace tokamak::sim {

const char* ToString(DropReason reason) {
  switch (reason) {
    case DropReason::kBuffer:
      return "buffer full";
    case DropReason::kHeadroom:
      return "headroom full";
    case DropReason::kNoRoute:
      return "no route";
    case DropReason::kWatchdog:
      return "watchdog";
    case DropReason::kLoss:
      return "loss";
    case DropReason::kLinkDown:
      return "link down";
    case DropReason::kReceiveBuffer:
      return "receive buffer full";
    case DropReason::kNobody:
      return "no NIC";
  }
  return "?";
}

}  // namespace tokamak::sim
