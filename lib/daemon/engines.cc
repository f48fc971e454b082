#include "lib/daemon/engines.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::daemon {

absl::StatusOr<std::unique_ptr<Engines>> Engines::Start(base::EventLoop& control_loop,
                                                        absl::Span<const transport::Rail> rails,
                                                        const EngineSettings& settings) {
  auto engines = std::make_unique<Engines>();
  engines->rails_ = rails.size();
  const base::Random random(settings.seed);
  const bool shared = settings.count == 0;
  for (uint32_t i = 0; i < (shared ? 1 : settings.count); ++i) {
    engines->engines_.push_back(std::make_unique<Engine>(control_loop));
    Engine& engine = *engines->engines_.back();
    if (!shared) {
      const os::ThreadOptions options{absl::StrCat("tokamak-eng", i)};
      engine.thread = std::make_unique<os::LoopThread>(options, settings.detection);
    }
    verbs::Address listen = settings.listen;
    if (listen.port != 0) listen.port = static_cast<uint16_t>(listen.port + i);
    absl::Status status;
    engine.CallOn([&] {
      auto host = node::EngineHost::Open(engine.loop(), engine.link, rails, listen, random.Fork(i), engines->trace_,
                                         settings.endpoint);
      status = host.status();
      if (host.ok()) engine.host = *std::move(host);
    });
    if (!status.ok()) return status;
  }
  return engines;
}

Engines::~Engines() { Stop(); }

void Engines::Stop() {
  for (const auto& engine : engines_) {
    engine->CallOn([&] { engine->host.reset(); });
    if (engine->thread != nullptr) engine->thread->Stop();
  }
}

std::vector<node::EngineLink*> Engines::links() {
  std::vector<node::EngineLink*> links;
  for (const auto& engine : engines_) links.push_back(&engine->link);
  return links;
}

void Engines::AddNumbers(std::vector<client::NumberEntry>& numbers) {
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (engines_[i]->host == nullptr) continue;  // stopped
    const transport::EndpointCounters& counters = engines_[i]->host->endpoint().counters();
    const auto add = [&](const char* name, uint64_t value) {
      numbers.push_back({absl::StrCat("engine", i, "_", name), value});
    };
    add("pulls_ok_total", counters.pulls_ok);
    add("pulls_failed_total", counters.pulls_failed);
    add("serves_ok_total", counters.serves_ok);
    add("serves_failed_total", counters.serves_failed);
    add("downgrades_total", counters.downgrades);
    add("credit_stalls_total", counters.credit_stalls);
    add("connections_opened_total", counters.connections_opened);
    add("connections_lost_total", counters.connections_lost);
    add("askers_gone_total", counters.askers_gone);
    add("protocol_errors_total", counters.protocol_errors);
    add("rails_joined_total", counters.rails_joined);
    add("rails_lost_total", counters.rails_lost);
    for (size_t rail = 0; rail < rails_; ++rail) {
      add(absl::StrCat("rail", rail, "_bytes_total").c_str(), counters.rail_bytes[rail]);
    }
  }
}

}  // namespace tokamak::daemon
