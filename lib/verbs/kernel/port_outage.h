// A port that goes down after a while, and perhaps comes up again (PortFault): the device reports
// it, and its network carries no packet meanwhile.
//
// Thread rule: as UserDevice.
#pragma once

#include "lib/base/event_loop.h"
#include "lib/verbs/kernel/program/program_faults.h"
#include "lib/verbs/kernel/user_device.h"
#include "lib/verbs/soft/fabrics/faulty_fabric.h"

namespace tokamak::verbs::kernel {

class PortOutage final {
 public:
  // `device` and `network`, below it, outlive this.
  PortOutage(UserDevice& device, soft::FaultyFabric& network, const PortFault& fault)
      : device_(device), network_(network), timer_(device.loop().RunAfter(fault.after, [this, fault] {
          Set(false);
          if (fault.lasts > base::Duration()) timer_ = device_.loop().RunAfter(fault.lasts, [this] { Set(true); });
        })) {}

 private:
  void Set(bool up) {
    network_.set_up(up);
    device_.SetPortActive(up);
  }

  UserDevice& device_;
  soft::FaultyFabric& network_;
  base::Timer timer_;
};

}  // namespace tokamak::verbs::kernel
