#include "examples/kv_cache/prefill.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "examples/deadline.h"
#include "examples/units.h"
#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {
namespace {

// The prompt is looked for again after this, should the event of its deletion have been lost.
constexpr Seconds kLook = Seconds(1);

Span<float> FloatsIn(MutableBuffer& block) {
  return {reinterpret_cast<float*>(block.data().data()), block.data().size() / sizeof(float)};
}

}  // namespace

Status Prefill::Serve() {
  for (bool last = false; !last; ++number_) {
    const RequestNames names(options_.name, number_);
    Result<Prompt> prompt = Status(StatusCode::kNotFound, "");
    // Held while the request is served, so that it is on this node until it is deleted.
    const auto buffer = client_.Get(names.Prompt().id(), options_.idle);
    if (!buffer.ok()) {
      if (!client_.status().ok()) return client_.status();
      return Status(
          StatusCode::kDeadlineExceeded,
          absl::StrCat("no prompt ", names.Prompt().text(), " came within ", FormatTime(options_.idle),
                       ": is `kv_cache decode --name ", options_.name, "` running? (", buffer.status().message(), ")"));
    }
    prompt = Prompt::Parse({reinterpret_cast<const char*>(buffer->data().data()), buffer->data().size()},
                           names.Prompt().text());
    if (!prompt.ok()) return prompt.status();
    Tell(absl::StrCat("prompt ", number_));
    last = prompt->last;
    const Status served = ServeOne(names, *prompt);
    if (!client_.status().ok()) return client_.status();  // and what is in the store went with the daemon
    const Status deleted = DeleteLayers(names, *prompt);
    if (!served.ok() && served.code() != StatusCode::kCancelled) return served;
    if (!deleted.ok()) return deleted;
    ++(served.ok() ? served_ : cancelled_);
    Tell(absl::StrCat("deleted ", number_));
  }
  return Status();
}

// kCancelled: the decoder has given up.
Status Prefill::ServeOne(const RequestNames& names, const Prompt& prompt) {
  auto events = client_.Subscribe();
  if (!events.ok()) return events.status();
  if (Status s = prompt.by_layers ? PutAsComputed(names, prompt) : PutTogether(names, prompt); !s.ok()) return s;
  Tell(absl::StrCat("put all ", number_));
  return AwaitDone(names, *events);
}

Status Prefill::PutAsComputed(const RequestNames& names, const Prompt& prompt) {
  PrefillModel model(prompt.shape, prompt.seed);
  for (uint32_t layer = 0; layer < prompt.shape.layers; ++layer) {
    if (layer > 0) {  // after the last the decoder may be done already
      if (Status s = StillWanted(names); !s.ok()) return s;
    }
    auto block = Create(names, prompt, layer);
    if (!block.ok()) return block.status();
    Tell(absl::StrCat("layer ", number_, " ", layer));
    model.ComputeLayer(FloatsIn(*block));
    if (Status s = Put(names, *std::move(block), layer); !s.ok()) return s;
  }
  return Status();
}

// To compare with: nothing can be pulled before everything is computed.
Status Prefill::PutTogether(const RequestNames& names, const Prompt& prompt) {
  PrefillModel model(prompt.shape, prompt.seed);
  std::vector<MutableBuffer> blocks;
  for (uint32_t layer = 0; layer < prompt.shape.layers; ++layer) {
    auto block = Create(names, prompt, layer);
    if (!block.ok()) return block.status();
    Tell(absl::StrCat("layer ", number_, " ", layer));
    model.ComputeLayer(FloatsIn(*block));
    blocks.push_back(*std::move(block));
    if (Status s = StillWanted(names); !s.ok()) return s;
  }
  for (uint32_t layer = 0; layer < prompt.shape.layers; ++layer) {
    if (Status s = Put(names, std::move(blocks[layer]), layer); !s.ok()) return s;
  }
  return Status();
}

Result<MutableBuffer> Prefill::Create(const RequestNames& names, const Prompt& prompt, uint32_t layer) {
  const ObjectName name = names.Layer(layer);
  PutOptions put = name.options();
  put.timeout = options_.deadline;
  auto block = client_.Create(name.id(), prompt.shape.block_bytes(), {}, put);
  if (block.ok()) return block;
  return Status(block.status().code(), absl::StrCat(name.text(), ": ", block.status().message()));
}

Status Prefill::Put(const RequestNames& names, MutableBuffer block, uint32_t layer) {
  if (Status s = block.Seal(); !s.ok()) {
    return Status(s.code(), absl::StrCat(names.Layer(layer).text(), ": ", s.message()));
  }
  Tell(absl::StrCat("put ", number_, " ", layer));
  return Status();
}

// Asks this node alone, where the prompt is pinned.
Status Prefill::StillWanted(const RequestNames& names) {
  const auto here = client_.Contains(names.Prompt().id());
  if (!here.ok()) return here.status();
  return *here ? Status() : Status(StatusCode::kCancelled, "the decoder has given up");
}

// Until the prompt is deleted.
Status Prefill::AwaitDone(const RequestNames& names, Subscription& events) {
  const Deadline deadline = Deadline::After(options_.deadline);
  for (;;) {
    const Status wanted = StillWanted(names);
    if (wanted.code() == StatusCode::kCancelled) return Status();
    if (!wanted.ok()) return wanted;
    if (deadline.passed()) {
      const Status deleted = client_.Delete(names.Prompt().id());
      return Status(
          StatusCode::kDeadlineExceeded,
          absl::StrCat("the decoder of ", names.Prompt().text(), " was not done within ", FormatTime(options_.deadline),
                       ": is it still running? Its layers were deleted",
                       deleted.ok() || deleted.code() == StatusCode::kNotFound ? "" : ", its prompt could not be"));
    }
    const auto happened = events.Next(std::min(kLook, deadline.remaining()));
    if (!happened.ok() && happened.status().code() != StatusCode::kDeadlineExceeded) return happened.status();
  }
}

// The decoder may be doing the same: what was put here and is not here any more is deleted.
Status Prefill::DeleteLayers(const RequestNames& names, const Prompt& prompt) {
  for (uint32_t layer = 0; layer < prompt.shape.layers; ++layer) {
    const ObjectId id = names.Layer(layer).id();
    const auto is_gone = [&] {
      const auto here = client_.Contains(id);
      return here.ok() && !*here;
    };
    if (is_gone()) continue;
    const Status status = client_.Delete(id);
    // A directory that has just begun cannot say NOT_FOUND of what the decoder has just deleted.
    if (!status.ok() && status.code() != StatusCode::kNotFound && !is_gone()) {
      return Status(status.code(), absl::StrCat(names.Layer(layer).text(), " is left: ", status.message()));
    }
  }
  return Status();
}

void Prefill::Tell(const std::string& moment) const {
  if (options_.on_moment != nullptr) options_.on_moment(moment);
}

}  // namespace tokamak::example
