#include "sim/emulation/attachment.h"

#include <sys/epoll.h>

#include <utility>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "sim/emulation/frame_edits.h"

namespace tokamak::sim {

absl::Status Attachment::PlugIn(HostInterface& interface, uint64_t queue) {
  auto port = interface.OpenOutside(queue, [this](const ArrivedFrame& frame) { OnArrived(frame); });
  if (!port.ok()) return port.status();
  CHECK_GE(queue, kLeastQueue);
  port_ = *std::move(port);
  queue_ = queue;
  return absl::OkStatus();
}

void Attachment::Watch(os::EpollLoop& io) {
  leaves_ = io.MakeSignal([this] { WriteFrames(); });
  enters_ = io.MakeSignal([this] {
    ReadFrames();
    SetEvents();
  });
  watch_ = io.Watch(device_->descriptor(), EPOLLIN, [this](uint32_t events) { OnEvents(events); });
}

void Attachment::Unwatch() {
  watch_.Reset();
  leaves_.reset();
  enters_.reset();
}

void Attachment::OnEvents(uint32_t events) {
  if ((events & EPOLLOUT) != 0) WriteFrames();
  if ((events & ~uint32_t{EPOLLOUT}) != 0) ReadFrames();
  SetEvents();
}

void Attachment::SetEvents() {
  if (!watch_.active()) return;
  watch_.SetEvents((unentered_.empty() ? uint32_t{EPOLLIN} : 0) | (unwritten_.empty() ? 0 : uint32_t{EPOLLOUT}));
}

void Attachment::ReadFrames() {
  for (int i = 0; i < kFramesPerTurn && PushEntering(); ++i) {
    Bytes bytes;
    const OutsideDevice::Result result = device_->Read(&bytes);
    if (Take(result)) {
      unentered_ = std::move(bytes);
    } else if (result == OutsideDevice::Result::kNothing || result == OutsideDevice::Result::kGone) {
      break;
    }
  }
  PushEntering();
  if (!entering_.empty() && !handed_.exchange(true)) time_.Hand([this] { EnterAll(); });
}

// False: the ring is full; `enters_` is raised when that changes.
bool Attachment::PushEntering() {
  if (unentered_.empty()) return true;
  if (!entering_.Push(std::move(unentered_))) {
    // It may just have been emptied. (The exchanges here and in EnterAll see each other: one thread
    // goes on.)
    stopped_.exchange(true);
    if (!entering_.Push(std::move(unentered_))) return false;
    stopped_ = false;
  }
  unentered_.clear();
  return true;
}

// Counts a failure. True: none.
bool Attachment::Take(OutsideDevice::Result result) {
  switch (result) {
    case OutsideDevice::Result::kDone:
      return true;
    case OutsideDevice::Result::kNothing:
      break;
    case OutsideDevice::Result::kTooLong:
      ++counters_.too_long;
      break;
    case OutsideDevice::Result::kUncut:
      if (counters_.uncut.value() == 0) {
        LOG(WARNING) << host_ << ": " << device_->name()
                     << " gives packets that a network card should cut up, and they are dropped. In the host's "
                        "network: ip link set dev INTERFACE gso_max_segs 1; or attach a tap";
      }
      ++counters_.uncut;
      break;
    case OutsideDevice::Result::kFailed:
      ++counters_.failed;
      break;
    case OutsideDevice::Result::kGone:
      LOG(ERROR) << host_ << ": " << device_->name() << " is gone, and the host with it; attach it by starting again";
      watch_.Reset();
      break;
  }
  return false;
}

// A frame not taken now is the first next time.
void Attachment::WriteFrames() {
  while (!unwritten_.empty() || leaving_.Pop(&unwritten_)) {
    const OutsideDevice::Result result = device_->Write(unwritten_);
    if (result == OutsideDevice::Result::kNothing) break;
    Take(result);
    unwritten_.clear();
  }
  SetEvents();
}

void Attachment::EnterAll() {
  handed_.exchange(false);  // sees what was pushed before it was set
  lag_.Add(time_.lag());
  Bytes bytes;
  while (!HeldUp() && entering_.Pop(&bytes)) Enter(bytes);
  if (!room_.armed() && stopped_.exchange(false)) enters_->Raise();
}

// True if the host's link may lack room for a frame; EnterAll then runs again later.
bool Attachment::HeldUp() {
  if (room_.armed()) return true;
  if (port_->queued() + kLeastQueue / 2 <= queue_) return false;
  ++counters_.held_up;
  room_ = time_.loop().RunAfter(port_->TimeOf(kLeastQueue), [this] { EnterAll(); });
  return true;
}

void Attachment::Enter(const Bytes& bytes) {
  const FrameHead head = ReadFrameHead(bytes);
  if (head.kind == FrameKind::kOther || head.kind == FrameKind::kMalformed) {
    ++counters_.not_carried;
    return;
  }
  switch (port_->Send(head.frame)) {
    case OutsidePort::Sent::kYes:
      ++counters_.entered[static_cast<size_t>(head.kind)];
      break;
    case OutsidePort::Sent::kNobody:
    case OutsidePort::Sent::kToItself:
      ++counters_.nobody;
      break;
    case OutsidePort::Sent::kTooLong:
    case OutsidePort::Sent::kQueueFull:
      CHECK(false) << host_ << ": the device gave a frame beyond kOutsideMtu, or was not held up";
  }
}

void Attachment::OnArrived(const ArrivedFrame& frame) {
  lag_.Add(time_.lag());
  if (frame.corrupt) {
    ++counters_.damaged;
    // Ethernet's check sum shows the card the damage
    if (ReadFrameHead(frame.bytes).kind != FrameKind::kRoce) return;
    DamageRoce(frame.bytes);
  }
  if (frame.marked) {
    MarkCongestion(frame.bytes);
    ++counters_.delivered_marked;
  }
  if (!leaving_.Push(Bytes(frame.bytes.begin(), frame.bytes.end()))) {
    ++counters_.leaving_full;
    return;
  }
  ++counters_.delivered;
  counters_.delivered_bytes += frame.bytes.size();
  leaves_->Raise();
}

}  // namespace tokamak::sim
