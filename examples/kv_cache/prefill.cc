#include "examples/kv_cache/prefill.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lib/base/units.h"
#include "lib/client/deadline.h"

namespace tokamak::example {
namespace {

using client::Deadline;

// The prompt is looked for again after this, should the event of its deletion have been lost.
constexpr base::Duration kLook = base::Seconds(1);

absl::Span<float> Floats(client::MutableBuffer& block) {
  return {reinterpret_cast<float*>(block.data().data()), block.data().size() / sizeof(float)};
}

}  // namespace

absl::Status Prefill::Serve() {
  for (bool last = false; !last; ++number_) {
    const RequestNames names(options_.name, number_);
    absl::StatusOr<Prompt> prompt = absl::NotFoundError("");
    // Held while the request is served, so that it is on this node until it is deleted.
    const auto buffer = client_.Get(names.Prompt().id(), options_.idle);
    if (!buffer.ok()) {
      if (!client_.status().ok()) return client_.status();
      return absl::DeadlineExceededError(
          absl::StrCat("no prompt ", names.Prompt().text(), " came within ", base::FormatDuration(options_.idle),
                       ": is `kv_cache decode --name ", options_.name, "` running? (", buffer.status().message(), ")"));
    }
    prompt = Prompt::Parse({reinterpret_cast<const char*>(buffer->data().data()), buffer->data().size()},
                           names.Prompt().text());
    if (!prompt.ok()) return prompt.status();
    Tell(absl::StrCat("prompt ", number_));
    last = prompt->last;
    const absl::Status served = ServeOne(names, *prompt);
    if (!client_.status().ok()) return client_.status();  // and what is in the store went with the daemon
    const absl::Status deleted = DeleteLayers(names, *prompt);
    if (!served.ok() && !absl::IsCancelled(served)) return served;
    if (!deleted.ok()) return deleted;
    ++(served.ok() ? served_ : cancelled_);
    Tell(absl::StrCat("deleted ", number_));
  }
  return absl::OkStatus();
}

// kCancelled: the decoder has given up.
absl::Status Prefill::ServeOne(const RequestNames& names, const Prompt& prompt) {
  auto events = client_.Subscribe();
  if (!events.ok()) return events.status();
  if (absl::Status s = prompt.by_layers ? PutAsComputed(names, prompt) : PutTogether(names, prompt); !s.ok()) return s;
  Tell(absl::StrCat("put all ", number_));
  return AwaitDone(names, *events);
}

absl::Status Prefill::PutAsComputed(const RequestNames& names, const Prompt& prompt) {
  PrefillModel model(prompt.shape, prompt.seed);
  for (uint32_t layer = 0; layer < prompt.shape.layers; ++layer) {
    auto block = Create(names, prompt, layer);
    if (!block.ok()) return block.status();
    Tell(absl::StrCat("layer ", number_, " ", layer));
    model.ComputeLayer(Floats(*block));
    if (absl::Status s = Put(names, *std::move(block), layer); !s.ok()) return s;
    if (absl::Status s = StillWanted(names); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// To compare with: nothing can be pulled before everything is computed.
absl::Status Prefill::PutTogether(const RequestNames& names, const Prompt& prompt) {
  PrefillModel model(prompt.shape, prompt.seed);
  std::vector<client::MutableBuffer> blocks;
  for (uint32_t layer = 0; layer < prompt.shape.layers; ++layer) {
    auto block = Create(names, prompt, layer);
    if (!block.ok()) return block.status();
    Tell(absl::StrCat("layer ", number_, " ", layer));
    model.ComputeLayer(Floats(*block));
    blocks.push_back(*std::move(block));
    if (absl::Status s = StillWanted(names); !s.ok()) return s;
  }
  for (uint32_t layer = 0; layer < prompt.shape.layers; ++layer) {
    if (absl::Status s = Put(names, std::move(blocks[layer]), layer); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<client::MutableBuffer> Prefill::Create(const RequestNames& names, const Prompt& prompt, uint32_t layer) {
  client::PutOptions put;
  put.timeout = options_.deadline;
  const ObjectName name = names.Layer(layer);
  auto block = client_.Create(name.id(), prompt.shape.block_bytes(), name.metadata(), put);
  if (block.ok()) return block;
  return absl::Status(block.status().code(), absl::StrCat(name.text(), ": ", block.status().message()));
}

absl::Status Prefill::Put(const RequestNames& names, client::MutableBuffer block, uint32_t layer) {
  if (absl::Status s = block.Seal(); !s.ok()) {
    return absl::Status(s.code(), absl::StrCat(names.Layer(layer).text(), ": ", s.message()));
  }
  Tell(absl::StrCat("put ", number_, " ", layer));
  return absl::OkStatus();
}

// Asks this node alone, where the prompt is pinned.
absl::Status Prefill::StillWanted(const RequestNames& names) {
  const auto here = client_.Contains(names.Prompt().id());
  if (!here.ok()) return here.status();
  return *here ? absl::OkStatus() : absl::CancelledError("the decoder has given up");
}

// Until the prompt is deleted.
absl::Status Prefill::AwaitDone(const RequestNames& names, client::Subscription& events) {
  const Deadline deadline = Deadline::After(options_.deadline);
  for (;;) {
    const absl::Status wanted = StillWanted(names);
    if (absl::IsCancelled(wanted)) return absl::OkStatus();
    if (!wanted.ok()) return wanted;
    if (deadline.passed()) {
      const absl::Status deleted = client_.Delete(names.Prompt().id());
      return absl::DeadlineExceededError(
          absl::StrCat("the decoder of ", names.Prompt().text(), " was not done within ",
                       base::FormatDuration(options_.deadline), ": is it still running? Its layers were deleted",
                       deleted.ok() || absl::IsNotFound(deleted) ? "" : ", its prompt could not be"));
    }
    const auto happened = events.Next(std::min(kLook, deadline.remaining()));
    if (!happened.ok() && !absl::IsDeadlineExceeded(happened.status())) return happened.status();
  }
}

// The decoder may be doing the same.
absl::Status Prefill::DeleteLayers(const RequestNames& names, const Prompt& prompt) {
  for (uint32_t layer = 0; layer < prompt.shape.layers; ++layer) {
    const absl::Status status = client_.Delete(names.Layer(layer).id());
    if (!status.ok() && !absl::IsNotFound(status)) {
      return absl::Status(status.code(), absl::StrCat(names.Layer(layer).text(), " is left: ", status.message()));
    }
  }
  return absl::OkStatus();
}

void Prefill::Tell(const std::string& moment) const {
  if (options_.on_moment != nullptr) options_.on_moment(moment);
}

}  // namespace tokamak::example
