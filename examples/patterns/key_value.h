// A key-value table that is read one-sidedly: a reader READs the bucket, and the owner's processor
// does not notice.
//
// The owner changes buckets while they are read, so what a READ brings may be half old and half
// new. Each bucket therefore proves itself: it carries a checksum of all its bytes, and a reader
// that finds another READs again. (Mitchell, Geng and Li, "Using One-Sided RDMA Reads to Build a
// Fast, CPU-Efficient Key-Value Store", USENIX ATC 2013: Pilaf.) A key may lie in any of
// kNeighbours buckets from its own on, which one READ brings together. (Dragojevic and others,
// "FaRM: Fast Remote Memory", NSDI 2014: hopscotch hashing.)
//
//   bucket: checksum 8 | key 8 | length 4 | zero 4 | value, value_size bytes       little endian
//
// A checksum of 64 bits lets a torn bucket pass once in 2^64 of them. Writing goes to the owner,
// by a message.
// Thread rule: the one thread of its loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "examples/patterns/link.h"
#include "examples/patterns/memory.h"
#include "xxhash.h"

namespace tokamak::example {

// The table's shape, on which owner and readers agree.
struct TableShape {
  static constexpr uint32_t kHeader = 24;     // bytes
  static constexpr uint64_t kNeighbours = 4;  // buckets

  uint64_t buckets = 1024;
  uint32_t value_size = 232;  // bytes, most; a multiple of 8

  uint64_t bucket_size() const { return kHeader + value_size; }
  // Extra buckets behind the last spare readers a wrap.
  uint64_t size() const { return (buckets + kNeighbours - 1) * bucket_size(); }
  uint64_t PlaceOf(uint64_t key) const { return XXH64(&key, sizeof(key), 0) % buckets * bucket_size(); }
  static uint64_t Checksum(absl::Span<const uint8_t> bucket) { return XXH64(bucket.data() + 8, bucket.size() - 8, 1); }
  static bool IsWhole(absl::Span<const uint8_t> bucket) {
    return base::LoadLittle<uint64_t>(bucket.data()) == Checksum(bucket);
  }
};

class TableOwner final {
 public:
  TableOwner(base::EventLoop& loop, verbs::Device& device, const TableShape& shape)
      : loop_(loop), device_(device), shape_(shape) {}

  absl::Status Listen() {
    auto table = Memory::Create(device_, shape_.size(), verbs::kRemoteRead);
    if (!table.ok()) return table.status();
    table_ = *std::move(table);
    for (uint64_t place = 0; place < shape_.size(); place += shape_.bucket_size()) Seal(Bucket(place));
    auto listener = device_.connection_manager().Listen(
        loop_, device_.address(), [this](std::unique_ptr<verbs::ConnectionRequest> request) { Accept(*request); });
    if (listener.ok()) listener_ = *std::move(listener);
    return listener.status();
  }

  // Keys are not 0. kResourceExhausted: all neighbours are taken by other keys.
  absl::Status Put(uint64_t key, absl::Span<const uint8_t> value) {
    if (key == 0 || value.size() > shape_.value_size) return absl::InvalidArgumentError("key 0, or value too long");
    absl::Span<uint8_t> chosen;
    for (uint64_t i = 0; i < TableShape::kNeighbours; ++i) {
      const absl::Span<uint8_t> bucket = Bucket(shape_.PlaceOf(key) + i * shape_.bucket_size());
      const uint64_t found = base::LoadLittle<uint64_t>(bucket.data() + 8);
      if (found == key || (found == 0 && chosen.empty())) chosen = bucket;
      if (found == key) break;
    }
    if (chosen.empty()) return absl::ResourceExhaustedError("a larger table has room");
    base::StoreLittle<uint64_t>(chosen.data() + 8, key);
    base::StoreLittle<uint32_t>(chosen.data() + 16, static_cast<uint32_t>(value.size()));
    std::copy(value.begin(), value.end(), chosen.begin() + TableShape::kHeader);
    Seal(chosen);
    return absl::OkStatus();
  }

  const verbs::Address& service() const { return listener_->address(); }
  uint64_t completions() const { return completions_; }  // that this side ever saw: none, however much is read

 private:
  absl::Span<uint8_t> Bucket(uint64_t place) { return table_->bytes().subspan(place, shape_.bucket_size()); }
  static void Seal(absl::Span<uint8_t> bucket) {
    base::StoreLittle<uint64_t>(bucket.data(), TableShape::Checksum(bucket));
  }

  void Accept(verbs::ConnectionRequest& request) {
    auto link = Link::Create(loop_, device_, *table_, [this](const verbs::Completion&) { ++completions_; });
    if (!link.ok()) return;  // and the request is rejected
    if ((*link)->Accept(request, [](const absl::Status&) {}).ok()) links_.push_back(*std::move(link));
  }

  base::EventLoop& loop_;
  verbs::Device& device_;
  const TableShape shape_;
  std::unique_ptr<Memory> table_;
  std::unique_ptr<verbs::Listener> listener_;
  std::vector<std::unique_ptr<Link>> links_;
  uint64_t completions_ = 0;
};

// Reads one key at a time.
class TableReader final {
 public:
  static constexpr uint32_t kMostReads = 1000;  // of one key

  // The bytes are valid during the call. kNotFound: the table has no such key. kAborted: it changed
  // under each of kMostReads READs.
  using OnValue = std::function<void(absl::StatusOr<absl::Span<const uint8_t>>)>;

  TableReader(base::EventLoop& loop, verbs::Device& device, const TableShape& shape)
      : loop_(loop), device_(device), shape_(shape) {}

  absl::Status Connect(const verbs::Address& service, Link::OnUp on_up) {
    auto copy = Memory::Create(device_, TableShape::kNeighbours * shape_.bucket_size(), ReadSinkRights());
    if (!copy.ok()) return copy.status();
    copy_ = *std::move(copy);
    auto link = Link::Create(loop_, device_, *copy_, [this](const auto& done) { OnCompletion(done); });
    if (!link.ok()) return link.status();
    link_ = *std::move(link);
    return link_->Connect(device_.connection_manager(), service, std::move(on_up));
  }

  absl::Status Get(uint64_t key, OnValue on_value) {
    if (on_value_ != nullptr) return absl::FailedPreconditionError("one key at a time");
    key_ = key;
    reads_ = 0;
    on_value_ = std::move(on_value);
    return Read();
  }

  uint64_t torn() const { return torn_; }  // READs that brought a bucket half old and half new

 private:
  verbs::Access ReadSinkRights() const {
    return device_.limits().read_sink_needs_remote_write ? verbs::kRemoteWrite : verbs::kLocalRead;
  }

  absl::Status Read() {
    ++reads_;
    return link_->Read(0, copy_->bytes(), shape_.PlaceOf(key_));
  }

  void OnCompletion(const verbs::Completion& completion) {
    if (completion.status != verbs::CompletionStatus::kSuccess) {
      return Tell(absl::UnavailableError(verbs::ToString(completion.status)));
    }
    for (uint64_t i = 0; i < TableShape::kNeighbours; ++i) {
      const absl::Span<const uint8_t> bucket = copy_->bytes().subspan(i * shape_.bucket_size(), shape_.bucket_size());
      if (!TableShape::IsWhole(bucket)) {
        ++torn_;
        if (reads_ == kMostReads) return Tell(absl::AbortedError("the bucket changed under every READ"));
        if (absl::Status s = Read(); !s.ok()) Tell(s);
        return;
      }
      if (base::LoadLittle<uint64_t>(bucket.data() + 8) != key_) continue;
      const uint32_t length = base::LoadLittle<uint32_t>(bucket.data() + 16);
      if (length > shape_.value_size) return Tell(absl::DataLossError("longer than a bucket"));
      return Tell(bucket.subspan(TableShape::kHeader, length));
    }
    Tell(absl::NotFoundError("no such key"));
  }

  void Tell(absl::StatusOr<absl::Span<const uint8_t>> value) {
    if (on_value_ == nullptr) return;
    const OnValue told = std::exchange(on_value_, nullptr);  // which may ask for the next
    told(value);
  }

  base::EventLoop& loop_;
  verbs::Device& device_;
  const TableShape shape_;
  std::unique_ptr<Memory> copy_;
  std::unique_ptr<Link> link_;
  uint64_t key_ = 0;
  uint32_t reads_ = 0;
  uint64_t torn_ = 0;
  OnValue on_value_;
};

}  // namespace tokamak::example
