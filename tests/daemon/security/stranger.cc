#include "tests/daemon/security/stranger.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::daemon {
namespace {

using Kind = verbs::ConnectionEvent::Kind;

constexpr uint32_t kCompletions = 64;

std::vector<uint8_t> BytesOf(const transport::Hello& hello) {
  std::vector<uint8_t> bytes(transport::kHelloSize);
  transport::EncodeHello(hello, absl::MakeSpan(bytes));
  return bytes;
}

}  // namespace

Stranger::Stranger(const std::string& device)
    : loop_(os::Detection::Event()), memory_((kReceives + 1) * size_t{kSlot}) {
  DeviceSettings settings;
  settings.loop = &loop_;
  auto opened = OpenDevice(device, settings);
  CHECK(opened.ok()) << opened.status();
  opened_ = *std::move(opened);
  domain_ = *opened_->device().CreateProtectionDomain();
  region_ = *domain_->RegisterMemory(absl::MakeSpan(memory_), verbs::kLocalWrite);
  completions_ = *opened_->device().CreateCompletionQueue(loop_, kCompletions, [] {});
}

Stranger::~Stranger() {
  connections_.clear();
  crowd_.clear();
}

transport::Hello Stranger::Hello() {
  transport::Hello hello;
  hello.reads_served = 16;
  hello.slot_size = kSlot;
  hello.first_slots = hello.receive_slots = kReceives;
  hello.max_transfers = hello.max_calls = 256;
  hello.token = 1;
  return hello;
}

std::unique_ptr<verbs::QueuePair> Stranger::MakeQueuePair(uint32_t receives) {
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = completions_.get();
  options.max_send_requests = 4;
  options.max_receive_requests = kReceives;
  auto queue_pair = *domain_->CreateQueuePair(options);
  for (uint32_t i = 0; i < receives; ++i) {
    const verbs::Sge piece{memory_.data() + size_t{i} * kSlot, kSlot, region_->lkey()};
    const verbs::ReceiveRequest request{i + 1, absl::MakeConstSpan(&piece, 1)};
    CHECK(queue_pair->PostReceive(absl::MakeConstSpan(&request, 1)).ok());
  }
  return queue_pair;
}

Stranger::Outcome Stranger::Say(const verbs::Address& service, const transport::Hello& hello,
                                const std::vector<uint8_t>& first, base::Duration limit) {
  Outcome outcome;
  CHECK_LE(first.size(), size_t{kSlot});
  uint8_t* const words = memory_.data() + size_t{kReceives} * kSlot;
  std::copy(first.begin(), first.end(), words);
  const auto queue_pair = MakeQueuePair(kReceives);
  const std::vector<uint8_t> private_data = BytesOf(hello);
  verbs::ConnectOptions options;
  options.private_data = private_data;
  auto connection = opened_->device().connection_manager().Connect(
      *queue_pair, service, options, [&](const verbs::ConnectionEvent& event) {
        outcome.connected |= event.kind == Kind::kEstablished;
        outcome.rejected |= event.kind == Kind::kRejected;
        outcome.ended |= event.kind == Kind::kDisconnected;
        if (event.kind != Kind::kEstablished || first.empty()) return;
        const verbs::Sge piece{words, static_cast<uint32_t>(first.size()), region_->lkey()};
        verbs::SendRequest request;
        request.sges = absl::MakeConstSpan(&piece, 1);
        CHECK(queue_pair->PostSend(absl::MakeConstSpan(&request, 1)).ok());
      });
  CHECK(connection.ok()) << connection.status();
  loop_.RunUntil([&] { return outcome.rejected || outcome.ended; }, loop_.Now() + limit);
  std::array<verbs::Completion, kCompletions> polled;
  for (size_t i = completions_->Poll(absl::MakeSpan(polled)); i > 0; --i) {
    const verbs::Completion& completion = polled[i - 1];
    outcome.messages_came += completion.id > 0 && completion.status == verbs::CompletionStatus::kSuccess;
  }
  return outcome;
}

size_t Stranger::Crowd(const verbs::Address& service, transport::Hello hello, size_t count, base::Duration limit) {
  connections_.clear();
  crowd_.clear();
  struct Counts {
    size_t connected = 0, over = 0;
  };
  const auto counts = std::make_shared<Counts>();  // its connections outlive this call
  for (size_t i = 0; i < count; ++i) {
    ++hello.token;
    const std::vector<uint8_t> private_data = BytesOf(hello);
    verbs::ConnectOptions options;
    options.private_data = private_data;
    crowd_.push_back(MakeQueuePair(0));
    auto connection = opened_->device().connection_manager().Connect(
        *crowd_.back(), service, options, [counts](const verbs::ConnectionEvent& event) {
          counts->connected += event.kind == Kind::kEstablished;
          counts->over += event.kind == Kind::kRejected || event.kind == Kind::kUnreachable;
        });
    if (connection.ok()) connections_.push_back(*std::move(connection));
  }
  loop_.RunUntil([&] { return counts->connected + counts->over >= connections_.size(); }, loop_.Now() + limit);
  return counts->connected;
}

}  // namespace tokamak::daemon
