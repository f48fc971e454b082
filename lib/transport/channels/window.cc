#include "lib/transport/channels/window.h"

#include <utility>

#include "lib/base/check.h"
#include "lib/transport/channels/bulk_queue.h"

namespace tokamak::transport {

Window::Window(base::EventLoop& loop, WindowPool& pool, std::unique_ptr<verbs::MemoryWindow> window, BulkQueue& queue,
               verbs::MemoryRegion& ground, absl::Span<uint8_t> memory, Owner& owner)
    : loop_(loop),
      pool_(pool),
      window_(std::move(window)),
      queue_(&queue),
      ground_(ground),
      memory_(memory),
      owner_(owner) {
  queue_->AddWindow(this);
  queue_->Ask(this);
}

Window::~Window() {
  Leave();
  closed() && !stranded_ ? pool_.Give(std::move(window_)) : pool_.Drop(std::move(window_));
}

void Window::Leave() {
  if (queue_ != nullptr) queue_->ForgetWindow(this);
  queue_ = nullptr;
}

void Window::Close() {
  switch (state_) {
    case State::kBinding:
      if (posted_) {
        state_ = State::kUnwanted;
      } else {
        state_ = State::kClosed;
        Leave();
      }
      return;
    case State::kOpen:
      state_ = State::kClosing;
      return queue_->Ask(this);
    case State::kUnwanted:
    case State::kClosing:
    case State::kClosed:
      return;
  }
}

void Window::Prepare(verbs::SendRequest* request) const {
  if (state_ == State::kClosing) {
    request->opcode = verbs::Opcode::kLocalInvalidate;
    request->rkey = window_->rkey();
    return;
  }
  CHECK(state_ == State::kBinding);
  request->opcode = verbs::Opcode::kBindWindow;
  request->bind.window = window_.get();
  request->bind.region = &ground_;
  request->bind.address = memory_.data();
  request->bind.length = memory_.size();
  request->bind.access = verbs::kRemoteWrite;
}

void Window::OnDone() {
  posted_ = false;
  switch (state_) {
    case State::kBinding:
      state_ = State::kOpen;
      return owner_.OnWindow();
    case State::kUnwanted:
      state_ = State::kClosing;
      return queue_->Ask(this);
    case State::kClosing:
      state_ = State::kClosed;
      Leave();
      return owner_.OnWindow();
    case State::kOpen:
    case State::kClosed:
      CHECK(false) << "a window that has asked for nothing";
  }
}

void Window::OnQueueGone() {
  queue_ = nullptr;
  stranded_ = true;
  state_ = State::kClosed;
  told_ = loop_.Post([this] { owner_.OnWindow(); });
}

}  // namespace tokamak::transport
