#include "lib/node/pulls/object_push.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lib/base/codec.h"

namespace tokamak::node {

namespace {

constexpr uint8_t kPull = 7;  // the first byte of a request of the objects service

constexpr uint64_t kMaxTimeout = 86'400'000'000;  // microseconds: a day
constexpr uint8_t kLastCode = static_cast<uint8_t>(absl::StatusCode::kUnauthenticated);

}  // namespace

ObjectPush::ObjectPush(const Services& services, const directory::NodeId& to, Request request, Callback done)
    : services_(services), to_(to), request_(std::move(request)), done_(std::move(done)) {
  CHECK_LE(request_.ids.size(), kMaxPushed);
  ++services_.under_way;
  // Its address may have changed since it was last asked for: a push is rare enough to ask again.
  step_ = services_.peers.Refresh([this](const absl::Status& status) {
    if (services_.peers.Find(to_) != nullptr) return Ask();
    Finish(status.ok() ? absl::NotFoundError(absl::StrCat("there is no node ", to_, " (tok nodes lists them)"))
                       : status);
  });
}

std::vector<uint8_t> ObjectPush::EncodeRequest(const Request& request) {
  base::Writer writer;
  writer.Integer(kPull);
  writer.Integer(static_cast<uint64_t>(request.timeout.microseconds()));
  writer.Integer(static_cast<uint32_t>(request.ids.size()));
  for (const base::ObjectId& id : request.ids) writer.Id(id);
  return writer.Take();
}

std::optional<ObjectPush::Request> ObjectPush::DecodeRequest(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  if (reader.Integer<uint8_t>() != kPull) return std::nullopt;
  const uint64_t timeout = reader.Integer<uint64_t>();
  Request request;
  request.ids.resize(reader.Count(kMaxPushed, base::ObjectId::kSize));
  for (base::ObjectId& id : request.ids) id = reader.Id();
  if (!reader.Complete() || timeout > kMaxTimeout || request.ids.empty()) return std::nullopt;
  request.timeout = base::Microseconds(static_cast<int64_t>(timeout));
  return request;
}

std::vector<uint8_t> ObjectPush::EncodeAnswer(absl::Span<const absl::Status> statuses) {
  std::vector<uint8_t> answer;
  for (const absl::Status& status : statuses) answer.push_back(static_cast<uint8_t>(status.code()));
  return answer;
}

void ObjectPush::Served::Ended(size_t place, const absl::Status& status) {
  statuses_[place] = status;
  if (--left_ == 0) reply_(EncodeAnswer(statuses_));
}

void ObjectPush::Ask() {
  step_ = services_.nodes.Call(services_.peers.Find(to_)->engines.front(), EncodeRequest(request_),
                               request_.timeout + services_.deadline,
                               [this](const absl::StatusOr<absl::Span<const uint8_t>>& reply) { Answered(reply); });
}

void ObjectPush::Answered(const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  if (!reply.ok()) {
    return Finish(absl::Status(reply.status().code(),
                               absl::StrCat("node ", to_, " did not say that it has it: ", reply.status().message())));
  }
  if (reply->size() != request_.ids.size()) {
    return Finish(
        absl::UnimplementedError(absl::StrCat("node ", to_, " takes no pushes: use programs of one release")));
  }
  std::vector<absl::Status> statuses;
  for (const uint8_t code : *reply) {
    const auto known = static_cast<absl::StatusCode>(code <= kLastCode ? code : 2);  // of what is not known: unknown
    statuses.push_back(known == absl::StatusCode::kOk
                           ? absl::OkStatus()
                           : absl::Status(known, absl::StrCat("it did not come to node ", to_, ": ",
                                                              absl::StatusCodeToString(known))));
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
