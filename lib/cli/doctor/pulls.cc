#include "lib/cli/doctor/pulls.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/random.h"
#include "lib/os/secret_seed.h"

namespace tokamak::cli::doctor {

namespace {

constexpr uint32_t kDialect = 0x31444b54;  // "TKD1" as it lies in memory
constexpr size_t kWordsAt = 12;            // where the device's name begins
constexpr size_t kMaxDevice = 128;         // bytes of a device's name

template <typename T>
T Median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

uint8_t Pattern(size_t i) { return static_cast<uint8_t>((i * 2654435761u) >> 13); }

// The id of the lender's object of `size` bytes.
base::ObjectId PulledId(uint64_t size) {
  std::array<uint8_t, base::ObjectId::kSize> bytes = {};
  base::StoreLittle(bytes.data(), size);
  return base::ObjectId(bytes);
}

struct Batch {
  uint32_t left = 0;
  absl::Status status;
};

class Landing final : public transport::Sink {
 public:
  Landing(absl::Span<uint8_t> memory, std::shared_ptr<Batch> batch) : memory_(memory), batch_(std::move(batch)) {}

  absl::Span<uint8_t> memory() const override { return memory_; }
  void Done(const absl::Status& status, const transport::TransferReport&) override {
    --batch_->left;
    batch_->status.Update(status);
  }

 private:
  const absl::Span<uint8_t> memory_;
  const std::shared_ptr<Batch> batch_;
};

// Pulls a batch, and returns how long that took.
absl::StatusOr<base::Duration> PullBatch(os::EpollLoop& loop, Station& station, const verbs::Address& lender,
                                         const PullStep& step, base::Duration patience) {
  const absl::Span<uint8_t> all = station.memory().subspan(0, size_t{step.size} * step.at_once);
  std::fill(all.begin(), all.end(), 0);
  transport::PullRequest request;
  request.id = PulledId(step.size);
  request.owner = lender;
  request.size = {step.size, 0};
  request.protocol = step.protocol;
  request.patience = patience;
  request.deadline = patience * 2;
  const auto batch = std::make_shared<Batch>();
  batch->left = step.at_once;
  const base::Time began = loop.Now();
  for (uint32_t i = 0; i < step.at_once; ++i) {
    station.endpoint().StartPull(request,
                                 std::make_unique<Landing>(all.subspan(size_t{i} * step.size, step.size), batch));
  }
  // The endpoint ends them by the deadline; a device that keeps it from that is found out a little
  // later.
  if (!loop.RunUntil([&] { return batch->left == 0; }, began + patience * 3)) {
    return absl::DeadlineExceededError("the device does not give up requests");
  }
  if (!batch->status.ok()) return batch->status;
  const base::Duration took = loop.Now() - began;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == Pattern(i % step.size)) continue;
    return absl::DataLossError(absl::StrCat("the bytes of an object differ from byte ", i % step.size, " on"));
  }
  return took;
}

}  // namespace

os::Detection MeasuringDetection(unsigned int processors) {
  return processors < 2 ? os::Detection::Event() : os::Detection::Adaptive(base::Microseconds(50));
}

unsigned int UsableProcessors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  // With more processors than the set holds there is more than one.
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return CPU_SETSIZE;
  return static_cast<unsigned int>(CPU_COUNT(&usable));
}

std::string DeviceWords::Encode() const {
  std::string bytes(kWordsAt, '\0');
  uint8_t* const p = reinterpret_cast<uint8_t*>(bytes.data());
  base::StoreLittle(p, kDialect);
  base::StoreLittle(p + 4, active_mtu);
  base::StoreLittle(p + 8, netdev_mtu);
  return bytes + device.substr(0, kMaxDevice);
}

absl::StatusOr<DeviceWords> DeviceWords::Decode(absl::string_view bytes) {
  const uint8_t* const p = reinterpret_cast<const uint8_t*>(bytes.data());
  // The name is shown on a terminal, which control characters would lead astray.
  if (bytes.size() <= kWordsAt || bytes.size() > kWordsAt + kMaxDevice || base::LoadLittle<uint32_t>(p) != kDialect ||
      !std::all_of(bytes.begin() + kWordsAt, bytes.end(), absl::ascii_isgraph)) {
    return absl::FailedPreconditionError("the answer is not that of a tok doctor --listen of this version");
  }
  return DeviceWords{std::string(bytes.substr(kWordsAt)), base::LoadLittle<uint32_t>(p + 4),
                     base::LoadLittle<uint32_t>(p + 8)};
}

Station::Station(os::EpollLoop& loop, uint32_t objects)
    : loop_(loop), answers_(loop), memory_(size_t{objects} * kObjectBytes) {
  for (size_t i = 0; i < kObjectBytes; ++i) memory_[i] = Pattern(i);
}

absl::StatusOr<std::unique_ptr<Station>> Station::Make(os::EpollLoop& loop, verbs::Device& device, uint32_t objects,
                                                       base::Duration patience, const StepHandler& on_step) {
  std::unique_ptr<Station> station(new Station(loop, objects));
  on_step("domain");
  auto domain = device.CreateProtectionDomain();
  if (!domain.ok()) return domain.status();
  station->domain_ = *std::move(domain);
  on_step("memory");
  auto registration = transport::RegisterArena(device, *station->domain_, station->memory());
  if (!registration.ok()) return registration.status();
  station->registration_ = *std::move(registration);
  on_step("endpoint");
  transport::EndpointOptions options;
  options.connect_deadline = patience;
  options.reliability.ack_timeout = transport::SuitableAckTimeout(device.limits());
  auto endpoint = transport::Endpoint::Open(loop, device, *station->domain_, *station->registration_, *station,
                                            base::Random(os::SecretSeed()), station->trace_, options);
  if (!endpoint.ok()) return endpoint.status();
  station->endpoint_ = *std::move(endpoint);
  return station;
}

absl::Status Station::Lend(const verbs::Address& address, const DeviceWords& words) {
  endpoint_->SetCallHandler([text = words.Encode()](absl::Span<const uint8_t>, const transport::Reply& reply) {
    reply(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
    return nullptr;
  });
  return endpoint_->Listen(address);
}

void Station::Pin(const base::ObjectVersion& version, transport::PinId pin, PinCallback done) {
  const auto size = base::LoadLittle<uint64_t>(version.id.data());
  const bool here = size > 0 && size <= kObjectBytes && version.id == PulledId(size);
  pins_[pin] = answers_.Add([this, pin, size, here, done = std::move(done)] {
    if (!here) {
      pins_.erase(pin);  // a pin that failed is not given back
      return done(absl::NotFoundError("a doctor lends objects to doctors alone"));
    }
    done(transport::PinnedObject{memory_.data(), {size, 0}});
  });
}

absl::Status TryPulls(os::EpollLoop& loop, Station& station, const verbs::Address& lender, const PullPlan& plan,
                      const StepHandler& on_step, PullFigures& figures) {
  transport::Endpoint& endpoint = station.endpoint();
  const std::array<uint8_t, kCallBytes> question = {};
  absl::Status answer;
  bool answered = false;
  const auto call = [&](base::Duration deadline) {
    answered = false;
    return endpoint.Call(lender, question, deadline, [&](absl::StatusOr<absl::Span<const uint8_t>> reply) {
      answered = true;
      answer = reply.status();
      if (!reply.ok()) return;
      const auto words = DeviceWords::Decode({reinterpret_cast<const char*>(reply->data()), reply->size()});
      answer = words.status();
      if (words.ok()) figures.peer = *words;
    });
  };

  on_step("connect");
  const base::Time began = loop.Now();
  base::Pending pending = call(plan.patience * 2);  // the connection's own deadline comes first
  const auto connected = [&] { return endpoint.counters().connections_opened > 0; };
  loop.RunUntil([&] { return answered || connected(); }, began + plan.patience * 3);
  if (!connected()) return answered ? answer : absl::DeadlineExceededError("the device does not give up connecting");
  figures.connected_ns = (loop.Now() - began).nanoseconds();

  on_step(absl::StrCat("call of ", kCallBytes, " B"));
  std::vector<int64_t> halves;
  const base::Time enough = loop.Now() + plan.spend;
  do {
    const base::Time asked = loop.Now();
    pending = call(plan.patience);
    loop.RunUntil([&] { return answered; }, asked + plan.patience * 2);
    if (!answered) return absl::DeadlineExceededError("the device does not give up requests");
    if (!answer.ok()) return answer;
    halves.push_back((loop.Now() - asked).nanoseconds() / 2);
  } while (halves.size() < plan.calls && loop.Now() < enough);
  figures.calls = static_cast<uint32_t>(halves.size());
  figures.half_round_trip_ns = Median(std::move(halves));

  for (const PullStep& step : kPullSteps) {
    on_step(step.name);
    std::vector<double> rates;
    const base::Time until = loop.Now() + plan.spend;
    do {
      const auto took = PullBatch(loop, station, lender, step, plan.patience);
      if (!took.ok()) return took.status();
      rates.push_back(1.0 * step.size * step.at_once / took->seconds());
    } while (step.figure != nullptr && rates.size() < plan.batches && loop.Now() < until);
    if (step.figure != nullptr) figures.rates[step.figure] = Median(std::move(rates));
  }
  return absl::OkStatus();
}

}  // namespace tokamak::cli::doctor
