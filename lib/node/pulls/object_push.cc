#include "lib/node/pulls/object_push.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::node {

ObjectPush::ObjectPush(const Needs& needs, const directory::NodeId& to, PushRequest request, Callback done)
    : needs_(needs), to_(to), request_(std::move(request)), done_(std::move(done)) {
  CHECK_LE(request_.ids.size(), PushRequest::kMaxPushed);
  ++needs_.under_way;
  // Asks again: the address may have changed.
  step_ = needs_.peers.Refresh([this](const absl::Status& status) {
    if (needs_.peers.Find(to_) != nullptr) return Ask();
    Finish(status.ok() ? absl::NotFoundError(absl::StrCat("there is no node ", to_, " (tok nodes lists them)"))
                       : status);
  });
}

void ObjectPush::Served::Ended(size_t place, const absl::Status& status) {
  statuses_[place] = status;
  if (--left_ == 0) reply_(EncodePushAnswer(statuses_));
}

void ObjectPush::Ask() {
  step_ = needs_.nodes.Call(needs_.peers.Find(to_)->engines.front(), EncodeRequest(request_),
                            request_.timeout + needs_.deadline,
                            [this](const absl::StatusOr<absl::Span<const uint8_t>>& reply) { Answered(reply); });
}

void ObjectPush::Answered(const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  if (!reply.ok()) {
    return Finish(absl::Status(reply.status().code(),
                               absl::StrCat("node ", to_, " did not say that it has it: ", reply.status().message())));
  }
  const std::optional<std::vector<absl::StatusCode>> codes = DecodePushAnswer(*reply, request_.ids.size());
  if (!codes.has_value()) {
    return Finish(
        absl::UnimplementedError(absl::StrCat("node ", to_, " takes no pushes: use programs of one release")));
  }
  std::vector<absl::Status> statuses;
  for (const absl::StatusCode code : *codes) {
    statuses.push_back(
        code == absl::StatusCode::kOk
            ? absl::OkStatus()
            : absl::Status(code, absl::StrCat("it did not come to node ", to_, ": ", absl::StatusCodeToString(code))));
  }
  const Callback done = std::move(done_);
  done(statuses);  // may destroy this
}

void ObjectPush::Finish(const absl::Status& of_all) {
  const std::vector<absl::Status> statuses(request_.ids.size(), of_all);
  const Callback done = std::move(done_);
  done(statuses);  // may destroy this
}

}  // namespace tokamak::node
