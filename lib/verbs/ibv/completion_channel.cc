#include "lib/verbs/ibv/completion_channel.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "lib/base/check.h"
#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {

absl::StatusOr<std::shared_ptr<CompletionChannel>> CompletionChannel::Open(ibv_context* device, os::EpollLoop& loop) {
  errno = 0;
  ibv_comp_channel* const channel = ibv_create_comp_channel(device);
  if (channel == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_create_comp_channel");
  const int flags = fcntl(channel->fd, F_GETFL);
  PCHECK(flags >= 0 && fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0);
  return std::make_shared<CompletionChannel>(channel, loop);
}

CompletionChannel::~CompletionChannel() { ibv_destroy_comp_channel(channel_); }

void CompletionChannel::Listen() {
  // One event suffices: the pollers look at all queues next, and each takes its own event.
  if (listeners_++ == 0) watch_ = loop_.Watch(channel_->fd, EPOLLIN, [this](uint32_t) { TakeEvent(); });
}

void CompletionChannel::Ignore() {
  CHECK_GT(listeners_, 0);
  if (--listeners_ == 0) watch_.Reset();
}

bool CompletionChannel::TakeEvent() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_, &queue, &context) != 0) return false;
  static_cast<CompletionTarget*>(static_cast<AsyncTarget*>(context))->OnChannelEvent();
  return true;
}

absl::StatusOr<std::shared_ptr<CompletionChannel>> CompletionChannels::Of(ibv_context* device, os::EpollLoop& loop) {
  const base::MutexLock lock(mutex_);
  const auto gone = [](const std::weak_ptr<CompletionChannel>& one) { return one.expired(); };
  channels_.erase(std::remove_if(channels_.begin(), channels_.end(), gone), channels_.end());
  for (const std::weak_ptr<CompletionChannel>& one : channels_) {
    // Only other loops' channels can go meanwhile.
    if (std::shared_ptr<CompletionChannel> channel = one.lock(); channel != nullptr && &channel->loop() == &loop) {
      return channel;
    }
  }
  auto opened = CompletionChannel::Open(device, loop);
  if (opened.ok()) channels_.push_back(*opened);
  return opened;
}

}  // namespace tokamak::verbs::ibv
