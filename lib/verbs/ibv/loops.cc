#include "lib/verbs/ibv/loops.h"

#include "lib/base/check.h"

namespace tokamak::verbs::ibv {

os::EpollLoop& RealLoop(base::EventLoop& loop) {
  auto* const real = dynamic_cast<os::EpollLoop*>(&loop);
  CHECK(real != nullptr) << "a device of libibverbs runs on os::EpollLoops only: it waits for descriptors";
  return *real;
}

}  // namespace tokamak::verbs::ibv
