#include "examples/kv_cache/decode.h"

#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "examples/deadline.h"
#include "examples/units.h"
#include "tokamak/gets.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRetryDelay(100);

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Span<const float> Floats(const Buffer& block) {
  return {reinterpret_cast<const float*>(block.data().data()), block.data().size() / sizeof(float)};
}

void Tell(const DecodeOptions& options, const std::string& moment) {
  if (options.on_moment != nullptr) options.on_moment(moment);
}

// The layers of one request, as they come.
class Layers final {
 public:
  Layers(Client& client, const DecodeOptions& options, Clock::time_point begin)
      : client_(client),
        options_(options),
        names_(options.name, options.number),
        begin_(begin),
        deadline_(Deadline::After(options.deadline)),
        gets_(client),
        blocks_(options.prompt.shape.layers),
        arrived_(options.prompt.shape.layers) {}

  // Waits until `layer` is here.
  Status Await(uint32_t layer) {
    while (blocks_[layer].empty()) {
      if (Status s = BeginGets(); !s.ok()) return s;
      auto answer = gets_.Next(deadline_.remaining());
      if (!answer.ok()) return Missing(layer, answer.status());
      const uint32_t came = under_way_.at(answer->number);
      under_way_.erase(answer->number);
      if (!answer->buffer.ok()) return Missing(came, answer->buffer.status());
      if (answer->buffer->data().size() != options_.prompt.shape.block_bytes()) {
        return Status(StatusCode::kDataLoss,
                      absl::StrCat(names_.Layer(came).text(), " has ", answer->buffer->data().size(), " bytes, not ",
                                   options_.prompt.shape.block_bytes()));
      }
      blocks_[came] = *std::move(answer->buffer);
      arrived_[came] = SecondsSince(begin_);
    }
    return Status();
  }

  Span<const float> block(uint32_t layer) const { return Floats(blocks_[layer]); }
  const std::vector<double>& arrived() const { return arrived_; }
  void Release() { Buffer::ReleaseAll(blocks_); }

 private:
  Status BeginGets() {
    while (next_ < blocks_.size() && gets_.pending() < options_.gets_under_way) {
      const auto begun = gets_.Begin(names_.Layer(next_).id(), deadline_.remaining());
      if (!begun.ok()) return begun.status();
      under_way_[*begun] = next_++;
    }
    return Status();
  }

  Status Missing(uint32_t layer, const Status& why) const {
    if (!client_.status().ok()) return client_.status();
    return Status(StatusCode::kDeadlineExceeded,
                  absl::StrCat("layer ", layer, " of ", blocks_.size(), " of request ", options_.name, "/",
                               options_.number, " did not come within ", FormatTime(options_.deadline),
                               ": is `kv_cache prefill --name ", options_.name, "` running? (", why.message(), ")"));
  }

  Client& client_;
  const DecodeOptions& options_;
  const RequestNames names_;
  const Clock::time_point begin_;
  const Deadline deadline_;
  Gets gets_;
  uint32_t next_ = 0;                       // layer to ask for
  std::map<uint64_t, uint32_t> under_way_;  // layer by number of the get
  std::vector<Buffer> blocks_;
  std::vector<double> arrived_;
};

Result<DecodeReport> DecodeWith(Client& client, const DecodeOptions& options, Clock::time_point begin) {
  const CacheShape& shape = options.prompt.shape;
  Layers layers(client, options, begin);
  DecodeModel model(shape, options.prompt.seed);
  DecodeReport report;
  for (uint32_t layer = 0; layer < shape.layers; ++layer) {
    if (Status s = layers.Await(layer); !s.ok()) return s;
    model.Attend(layers.block(layer));
    report.used.push_back(SecondsSince(begin));
    Tell(options, absl::StrCat("used ", options.number, " ", layer));
  }
  report.tokens.push_back(model.EndToken());
  report.first_token = SecondsSince(begin);
  while (report.tokens.size() < options.tokens) {
    for (uint32_t layer = 0; layer < shape.layers; ++layer) model.Attend(layers.block(layer));
    report.tokens.push_back(model.EndToken());
  }
  report.all_tokens = SecondsSince(begin);
  report.arrived = layers.arrived();
  layers.Release();
  return report;
}

// The prompt first: a prefill that puts a layer after this has looked for it finds the prompt gone,
// and deletes the layer itself.
Status CleanUp(Client& client, const DecodeOptions& options) {
  const RequestNames names(options.name, options.number);
  const Deadline deadline = Deadline::After(options.deadline);
  Status first;
  const auto remove = [&](const ObjectName& name) {
    Status status = client.Delete(name.id());
    // A directory that has just begun cannot know yet that the prefill was faster.
    while (status.code() == StatusCode::kUnavailable && client.status().ok() && !deadline.passed()) {
      std::this_thread::sleep_for(kRetryDelay);
      status = client.Delete(name.id());
    }
    if (status.ok() || status.code() == StatusCode::kNotFound || !first.ok()) return;
    first = Status(status.code(), absl::StrCat(name.text(), " could not be deleted: ", status.message()));
  };
  remove(names.Prompt());
  for (uint32_t layer = 0; layer < options.prompt.shape.layers && client.status().ok(); ++layer) {
    remove(names.Layer(layer));
  }
  return first;
}

}  // namespace

Result<DecodeReport> Decode(Client& client, const DecodeOptions& options) {
  if (Status s = options.prompt.shape.Check(); !s.ok()) return s;
  const ObjectName prompt = RequestNames(options.name, options.number).Prompt();
  const std::string content = options.prompt.ToJson();
  PutOptions put = prompt.options();
  put.confirmed = true;
  const Clock::time_point begin = Clock::now();
  const Status asked = client.Put(prompt.id(), content, {}, put);
  if (asked.code() == StatusCode::kAlreadyExists) {
    return Status(StatusCode::kAlreadyExists,
                  absl::StrCat(prompt.text(), " is being decoded, or was left by one that was killed",
                               ": choose another --name, or tok rm --prefix ", options.name, "/"));
  }
  if (!asked.ok()) return asked;
  Tell(options, absl::StrCat("asked ", options.number));
  auto report = DecodeWith(client, options, begin);
  if (!client.status().ok()) return client.status();
  const Status cleaned = CleanUp(client, options);
  if (!report.ok()) {
    if (cleaned.ok()) return report;
    return Status(report.status().code(), absl::StrCat(report.status().message(), "; ", cleaned.message()));
  }
  if (!cleaned.ok()) return cleaned;
  Tell(options, absl::StrCat("done ", options.number));
  return report;
}

}  // namespace tokamak::example
