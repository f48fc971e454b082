#include "tests/bench/nic_end.h"

#include <malloc.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::bench {
namespace {

constexpr auto kAll = verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead;
constexpr uint32_t kReceives = 16;  // waiting at an end that takes messages
constexpr uint32_t kPolled = 64;    // completions at once

os::Detection DetectionOf(const Setting& setting) {
  return setting.busy ? os::Detection::Busy() : os::Detection::Event();
}

}  // namespace

MemoryUse MeasureMemory() {
  const struct mallinfo2 heap = mallinfo2();
  uint64_t size = 0;
  uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return {heap.uordblks + heap.hblkhd, resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
}

NicEnd::NicEnd(const Setting& setting, absl::Span<uint8_t> arena, Handler handler)
    : setting_(setting), arena_(arena), handler_(std::move(handler)), loop_(DetectionOf(setting)) {}

absl::StatusOr<std::unique_ptr<NicEnd>> NicEnd::Open(const verbs::Address& address, const Setting& setting,
                                                     absl::Span<uint8_t> arena, Handler handler) {
  std::unique_ptr<NicEnd> end(new NicEnd(setting, arena, std::move(handler)));
  if (absl::Status s = end->Plug(address); !s.ok()) return s;
  return end;
}

NicEnd::~NicEnd() {
  polled_.Reset();
  connections_.clear();
  queue_pairs_.clear();
  region_.reset();
  completions_.reset();
  domain_.reset();
  device_.reset();
  if (thread_ != nullptr) thread_->CallOn([this] { fabric_.reset(); });
}

absl::Status NicEnd::Plug(const verbs::Address& address) {
  absl::Status status;
  if (setting_.one_thread) {
    status = OpenDevice(loop_, address);
  } else {
    thread_ = std::make_unique<os::LoopThread>(os::ThreadOptions{"nic"}, DetectionOf(setting_));
    thread_->CallOn([&] { status = OpenDevice(thread_->loop(), address); });
  }
  if (!status.ok()) return status;
  auto domain = device_->CreateProtectionDomain();
  if (!domain.ok()) return domain.status();
  domain_ = *std::move(domain);
  auto region = domain_->RegisterMemory(arena_, kAll);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  // The loop polls it: an event only has to end its sleep.
  auto completions = device_->CreateCompletionQueue(loop_, 2 * setting_.depth * setting_.queue_pairs, [] {});
  if (!completions.ok()) return completions.status();
  completions_ = *std::move(completions);
  polled_ = loop_.AddPoller(*this);
  return absl::OkStatus();
}

absl::Status NicEnd::OpenDevice(os::EpollLoop& nic_loop, const verbs::Address& address) {
  fabric_ = std::make_unique<verbs::soft::UdpFabric>(nic_loop);
  verbs::soft::DeviceOptions options;
  options.address = address;
  options.seed = address.ip[15];
  if (thread_ != nullptr) {
    options.run_on_nic_loop = [this](const std::function<void()>& call) { thread_->CallOn(call); };
  }
  auto device = verbs::soft::OpenSoftDevice(nic_loop, *fabric_, trace_, options);
  if (!device.ok()) return device.status();
  device_ = *std::move(device);
  return absl::OkStatus();
}

absl::StatusOr<verbs::QueuePair*> NicEnd::AddQueuePair(bool receives) {
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = completions_.get();
  options.max_send_requests = options.max_receive_requests = setting_.depth;
  options.max_inline = receives ? kSmallMessage : 0;
  options.remote_access = verbs::kRemoteWrite | verbs::kRemoteRead;
  auto made = domain_->CreateQueuePair(options);
  if (!made.ok()) return made.status();
  queue_pairs_.push_back(*std::move(made));
  for (uint32_t i = 0; receives && i < kReceives; ++i) {
    if (absl::Status s = PostReceive(queue_pairs_.size() - 1); !s.ok()) return s;
  }
  return queue_pairs_.back().get();
}

absl::Status NicEnd::PostReceive(size_t index) {
  const verbs::Sge sge = {arena_.data(), kSmallMessage, lkey()};
  const verbs::ReceiveRequest request = {kReceive | index, absl::MakeConstSpan(&sge, 1)};
  return queue_pairs_[index]->PostReceive(absl::MakeConstSpan(&request, 1)).status;
}

absl::Status NicEnd::PostSmall(size_t index) {
  const verbs::Sge sge = {arena_.data() + kSmallMessage, kSmallMessage, lkey()};
  verbs::SendRequest request;
  request.id = index;
  request.flags = ++sent_ % (setting_.depth / 2) == 0 ? verbs::kInline | verbs::kSignaled : verbs::kInline;
  request.sges = absl::MakeConstSpan(&sge, 1);
  return queue_pairs_[index]->PostSend(absl::MakeConstSpan(&request, 1)).status;
}

bool NicEnd::Poll() {
  std::array<verbs::Completion, kPolled> completions;
  const size_t count = completions_->Poll(absl::MakeSpan(completions));
  for (size_t i = 0; i < count; ++i) {
    if (completions[i].status == verbs::CompletionStatus::kFlushed) continue;  // the peer disconnected
    CHECK(completions[i].status == verbs::CompletionStatus::kSuccess) << verbs::ToString(completions[i].status);
    handler_(completions[i]);
  }
  return count > 0;
}

}  // namespace tokamak::bench
