#include "lib/cli/tune/asked_holder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/tune/ask.h"

namespace tokamak::cli::tune {
namespace {

// For the other side, and one ask.
constexpr std::chrono::seconds kMakeDeadline(10);

absl::Status PutText(Client& client, const ObjectId& id, const std::string& text) {
  PutOptions options;
  options.confirmed = true;
  return AsAbsl(client.Put(id, text, {}, options));
}

}  // namespace

absl::StatusOr<AskedHolder> AskedHolder::Call(Client& client, const std::string& node, uint64_t session, Undo& undo) {
  const auto nodes = AsAbsl(client.Nodes());
  if (!nodes.ok()) return nodes.status();
  const auto found = std::find_if(nodes->begin(), nodes->end(), [&](const auto& one) { return one.name == node; });
  if (found == nodes->end()) {
    return absl::NotFoundError(absl::StrCat("--peer: there is no node ", node, " (tok nodes lists them)"));
  }
  const ObjectId call = CallId(node);
  const absl::Status called = undo.Do([&] { return PutText(client, call, EncodeSession(session)); },
                                      [&client, call] { return AsAbsl(client.Delete(call)); });
  if (absl::IsAlreadyExists(called)) {
    return absl::FailedPreconditionError(
        absl::StrCat("another tok tune calls ", node, "; if it was killed: tok rm ", call.ToHex()));
  }
  if (!called.ok()) return called;
  return AskedHolder(client, node, found->capacity, session);
}

AskedHolder::AskedHolder(AskedHolder&& other) noexcept
    : client_(std::exchange(other.client_, nullptr)),
      node_(std::move(other.node_)),
      capacity_(other.capacity_),
      session_(other.session_),
      asks_(other.asks_),
      answers_(other.answers_) {}

AskedHolder::~AskedHolder() {
  // A side that does not answer needs no notice.
  if (client_ != nullptr && answers_) Ask({}).IgnoreError();
}

absl::Status AskedHolder::Ask(absl::Span<const TestObject> objects) {
  return PutText(*client_, AskId(session_, ++asks_), EncodeAsk(objects));
}

absl::Status AskedHolder::Make(absl::Span<const TestObject> objects) {
  std::vector<ObjectId> ids;
  for (const TestObject& object : objects) ids.push_back(object.id);
  answers_ = false;
  if (absl::Status asked = Ask(objects); !asked.ok()) return asked;
  const auto made = AsAbsl(client_->Wait(ids, ids.size(), kMakeDeadline));
  const absl::Status deleted = AsAbsl(client_->Delete(AskId(session_, asks_)));
  if (!made.ok()) return made.status();
  if (!deleted.ok()) return deleted;
  answers_ = std::find(made->begin(), made->end(), false) == made->end();
  if (answers_) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("nobody makes test objects on ", node_, ": does tok tune --serve run there, and what does it say?"));
}

}  // namespace tokamak::cli::tune
