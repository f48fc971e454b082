#include "tests/daemon/truth/witness.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace tokamak::daemon {

namespace {

using Kind = sim::Operation::Kind;
using Outcome = sim::Operation::Outcome;

// A number and what follows from it; small ones by message, others by a WRITE, the largest between
// engines for bulk, and several of one size.
constexpr size_t kSizes[] = {64, 3000, 3000, 60'000, 1'200'000};

Outcome OutcomeOf(const Status& status) {
  if (status.ok()) return Outcome::kOk;
  if (status.code() == StatusCode::kNotFound) return Outcome::kNothing;
  if (status.code() == StatusCode::kAlreadyExists) return Outcome::kRefused;
  return Outcome::kFailed;
}

uint64_t ContentOf(Span<const uint8_t> data) {
  uint64_t content = 0;
  if (data.size() >= sizeof(content)) std::memcpy(&content, data.data(), sizeof(content));
  return content;
}

}  // namespace

int64_t Witness::Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

std::vector<uint8_t> Witness::Bytes(uint64_t content) {
  std::vector<uint8_t> bytes(kSizes[content % std::size(kSizes)]);
  std::memcpy(bytes.data(), &content, sizeof(content));
  uint64_t state = content;
  for (size_t i = sizeof(content); i < bytes.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = static_cast<uint8_t>(state >> 56);
  }
  return bytes;
}

size_t Witness::Begin(Kind kind, uint32_t node, const std::string& id, uint64_t content, bool confirmed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  sim::Operation operation;
  operation.kind = kind;
  operation.node = node;
  operation.id = id;
  operation.begin = Now();
  operation.end = INT64_MAX;
  operation.content = content;
  operation.confirmed = confirmed;
  return history_.Begin(operation);
}

void Witness::End(Client& client, Kind kind, size_t place, const Status& status) {
  const int64_t end = Now();
  // The daemon may have done what it did not answer.
  const bool unknown = status.code() == StatusCode::kDeadlineExceeded || (!status.ok() && !client.status().ok());
  const Outcome outcome = unknown ? Outcome::kUnknown : OutcomeOf(status);
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_[{kind, outcome}];
  history_.End(place, outcome, unknown ? INT64_MAX : end, 0, std::string(status.message()));
}

Status Witness::Put(Client& client, uint32_t node, const std::string& id, bool confirmed) {
  uint64_t content = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    content = ++last_content_;
  }
  const std::vector<uint8_t> bytes = Bytes(content);
  PutOptions options;
  options.confirmed = confirmed;
  const size_t place = Begin(Kind::kPut, node, id, content, confirmed);
  const Status status = client.Put(ObjectId::FromName(id), bytes, {}, options);
  End(client, Kind::kPut, place, status);
  return status;
}

void Witness::PutSmall(Client& client, uint32_t node, const std::vector<std::string>& ids) {
  std::vector<std::vector<uint8_t>> contents;
  std::vector<PutObject> objects(ids.size());
  std::vector<size_t> places;
  for (const std::string& id : ids) {
    uint64_t content = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      last_content_ += std::size(kSizes) - last_content_ % std::size(kSizes);
      content = last_content_;
    }
    contents.push_back(Bytes(content));
    places.push_back(Begin(Kind::kPut, node, id, content, false));
  }
  for (size_t i = 0; i < ids.size(); ++i) objects[i] = {ObjectId::FromName(ids[i]), contents[i], {}};
  const std::vector<Status> statuses = client.Put(objects);
  for (size_t i = 0; i < ids.size(); ++i) End(client, Kind::kPut, places[i], statuses[i]);
}

Status Witness::Delete(Client& client, uint32_t node, const std::string& id) {
  const size_t place = Begin(Kind::kDelete, node, id, 0, false);
  const Status status = client.Delete(ObjectId::FromName(id));
  End(client, Kind::kDelete, place, status);
  return status;
}

void Witness::EndGet(size_t place, int64_t end, const std::string& id, const Result<Buffer>& buffer) {
  if (!buffer.ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_[{Kind::kGet, OutcomeOf(buffer.status())}];
    history_.End(place, OutcomeOf(buffer.status()), end, 0, std::string(buffer.status().message()));
    return;
  }
  const uint64_t content = ContentOf(buffer->data());
  const std::vector<uint8_t> whole = Bytes(content);
  const bool same = std::equal(whole.begin(), whole.end(), buffer->data().begin(), buffer->data().end());
  const std::lock_guard<std::mutex> lock(mutex_);
  history_.End(place, Outcome::kOk, end, content);
  ++counts_[{Kind::kGet, Outcome::kOk}];
  if (!same) torn_.push_back(absl::StrCat("not whole: ", id, " with the number ", content));
}

Status Witness::Get(Client& client, uint32_t node, const std::string& id, Timeout timeout) {
  const size_t place = Begin(Kind::kGet, node, id, 0, false);
  const auto buffer = client.Get(ObjectId::FromName(id), timeout);
  EndGet(place, Now(), id, buffer);
  return buffer.status();
}

std::vector<uint64_t> Witness::GetAll(Client& client, uint32_t node, const std::vector<std::string>& ids,
                                      Timeout timeout, bool last) {
  std::vector<ObjectId> objects;
  std::vector<size_t> places;
  for (const std::string& id : ids) {
    objects.push_back(ObjectId::FromName(id));
    places.push_back(Begin(Kind::kGet, node, id, 0, false));
  }
  const auto buffers = client.Get(objects, timeout);
  std::vector<uint64_t> contents;
  const int64_t end = Now();
  for (size_t i = 0; i < ids.size(); ++i) {
    EndGet(places[i], end, ids[i], buffers[i]);
    contents.push_back(buffers[i].ok() ? ContentOf(buffers[i]->data()) : 0);
    if (!last) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    history_.MarkLast(places[i]);
  }
  return contents;
}

void Witness::Lost(uint32_t node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  history_.Lost(node, Now());
}

void Witness::Left(uint32_t node, int64_t begin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  history_.Left(node, begin, Now());
}

void Witness::DirectoryForgot(int64_t begin, int64_t end) {
  const std::lock_guard<std::mutex> lock(mutex_);
  history_.DirectoryForgot(begin, begin);
  history_.DirectoryKnows(end);
}

size_t Witness::Count(Kind kind, Outcome outcome) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = counts_.find({kind, outcome});
  return found == counts_.end() ? 0 : found->second;
}

std::string Witness::Summary() const {
  const auto of = [this](const char* name, Kind kind) {
    return absl::StrCat(name, ": ", Count(kind, Outcome::kOk), " ok, ", Count(kind, Outcome::kNothing),
                        " found nothing, ", Count(kind, Outcome::kRefused), " refused, ", Count(kind, Outcome::kFailed),
                        " failed, ", Count(kind, Outcome::kUnknown), " unknown\n");
  };
  return absl::StrCat(of("puts", Kind::kPut), of("gets", Kind::kGet), of("deletes", Kind::kDelete));
}

std::string Witness::Describe(const std::string& id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return history_.Describe(id);
}

std::vector<std::string> Witness::Violations() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> wrong = history_.Violations();
  wrong.insert(wrong.end(), torn_.begin(), torn_.end());
  return wrong;
}

}  // namespace tokamak::daemon
