// EngineThread is a transport engine's loop on a thread of its own.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/node/machine.h"
#include "lib/os/loop_thread.h"

namespace tokamak::daemon {

class EngineThread final : public node::EngineLoop {
 public:
  // No `processors`: any.
  EngineThread(uint32_t number, std::vector<int> processors, const os::Detection& detection)
      : thread_(os::ThreadOptions{absl::StrCat("tokamak-eng", number), std::move(processors)}, detection) {}

  base::EventLoop& loop() override { return thread_.loop(); }
  void CallOn(absl::FunctionRef<void()> call) override { thread_.CallOn(call); }
  void Stop() override { thread_.Stop(); }

 private:
  os::LoopThread thread_;
};

}  // namespace tokamak::daemon
