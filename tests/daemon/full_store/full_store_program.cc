// A program at a store that is full: it creates, fills, seals, aborts, gets, verifies, holds and
// deletes, drawn from a seed, until it is killed. Started by FullStore.
#include <chrono>
#include <cstdint>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "tests/daemon/full_store/full_store_object.h"
#include "tests/daemon/full_store/full_store_tally.h"
#include "tokamak/client.h"

namespace tokamak::daemon {
namespace {

constexpr size_t kMostHeld = 4;        // objects that the program reads at once
constexpr size_t kMostUnsealed = 2;    // and that it fills
constexpr uint64_t kMostAskedFor = 8;  // in one get

class Program final {
 public:
  Program(Client client, base::Random random, std::shared_ptr<FullStoreTally> tally)
      : client_(std::move(client)), random_(random), tally_(std::move(tally)) {}

  // Until the connection is lost.
  void Run() {
    while (client_.status().ok()) Act();
  }

 private:
  struct Held {
    FullStoreObject object;
    Buffer buffer;
  };
  struct Unsealed {
    FullStoreObject object;
    MutableBuffer buffer;
  };

  FullStoreObject Drawn() { return FullStoreObject(random_.Below(FullStoreObject::kNumbers)); }
  std::chrono::milliseconds Wait() { return std::chrono::milliseconds(random_.Below(50)); }

  void Act() {
    const uint64_t what = random_.Below(100);
    if (what < 40) return Create();
    if (what < 45) return PutSeveral();
    if (what < 80) return Get();
    if (what < (full_ ? 98 : 85)) return Delete();
    Look();
  }

  void Create() {
    const FullStoreObject object = Drawn();
    PutOptions options;
    options.timeout = Wait();
    options.claim = random_.Chance(0.7);
    options.confirmed = random_.Chance(0.1);
    auto buffer =
        client_.Create(object.id(), object.data_size(), std::vector<uint8_t>(object.metadata_size()), options);
    Note(buffer.status());
    if (!buffer.ok()) return;
    object.Fill(buffer->data(), buffer->metadata());
    unsealed_.push_back({object, *std::move(buffer)});
    // Some stay unsealed while others are created, so that a killed program leaves some.
    if (unsealed_.size() > kMostUnsealed || random_.Chance(0.5)) EndUnsealed();
  }

  void EndUnsealed() {
    Unsealed first = std::move(unsealed_.front());
    unsealed_.pop_front();
    if (random_.Chance(0.1)) {
      tally_->aborted += first.buffer.Abort().ok() ? 1 : 0;
      return;
    }
    const Status sealed = first.buffer.Seal();
    Note(sealed);
    tally_->created += sealed.ok() ? 1 : 0;
  }

  void PutSeveral() {
    std::vector<std::vector<uint8_t>> bytes;
    std::vector<FullStoreObject> chosen;
    for (uint64_t i = random_.Below(8); i < 8; ++i) {
      const FullStoreObject object = Drawn();
      if (object.data_size() > 4096) continue;
      bytes.emplace_back(object.data_size() + object.metadata_size());
      const Span<uint8_t> all(bytes.back());
      object.Fill(all.first(object.data_size()), all.subspan(object.data_size()));
      chosen.push_back(object);
    }
    std::vector<PutObject> objects;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const Span<const uint8_t> all(bytes[i]);
      objects.push_back({chosen[i].id(), all.first(chosen[i].data_size()), all.subspan(chosen[i].data_size())});
    }
    PutOptions options;
    options.timeout = Wait();
    for (const Status& put : client_.Put(objects, options)) {
      Note(put);
      tally_->created += put.ok() ? 1 : 0;
    }
  }

  void Get() {
    std::vector<FullStoreObject> wanted;
    std::vector<ObjectId> ids;
    for (uint64_t i = random_.Below(kMostAskedFor); i < kMostAskedFor; ++i) {
      wanted.push_back(Drawn());
      ids.push_back(wanted.back().id());
    }
    auto buffers = client_.Get(ids, Wait());
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i].ok()) {
        ++tally_->missed;
        continue;
      }
      ++tally_->got;
      Verify(wanted[i], *buffers[i], "when it was got");
      held_.push_back({wanted[i], *std::move(buffers[i])});
      if (held_.size() > kMostHeld) LetGo();
    }
  }

  // Pinned objects have not changed, whatever came and went beside them.
  void LetGo() {
    Verify(held_.front().object, held_.front().buffer, "when it was released");
    held_.pop_front();
  }

  void Delete() {
    full_ = false;
    const Status deleted = client_.Delete(Drawn().id());
    tally_->deleted += deleted.ok() ? 1 : 0;
    if (!held_.empty()) LetGo();
  }

  void Look() {
    const ObjectId id = Drawn().id();
    switch (random_.Below(4)) {
      case 0:
        return client_.Touch(id).IgnoreError();
      case 1:
        return client_.Evict(random_.Below(1 << 20)).status().IgnoreError();
      case 2:
        return client_.Contains(id).status().IgnoreError();
      default:
        return client_.Stat(id).status().IgnoreError();
    }
  }

  // Counts the result of a create or a seal in a full store, of ids that others have, too.
  void Note(const Status& status) {
    switch (status.code()) {
      case StatusCode::kResourceExhausted:
        full_ = true;
        ++tally_->refused;
        return;
      case StatusCode::kOk:
      case StatusCode::kAlreadyExists:
      case StatusCode::kFailedPrecondition:  // deleted, and still read by somebody
      case StatusCode::kNotFound:            // of a seal whose daemon ends
      case StatusCode::kUnavailable:
        return;
      default:
        ++tally_->unexpected;
        std::cerr << "unexpected: " << status << std::endl;
    }
  }

  void Verify(const FullStoreObject& object, const Buffer& buffer, const char* when) {
    tally_->verified_bytes += buffer.data().size() + buffer.metadata().size();
    if (object.Is(buffer.data(), buffer.metadata())) return;
    ++tally_->wrong;
    std::cerr << "object " << object.id().ToHex() << " had wrong bytes " << when << std::endl;
  }

  Client client_;
  base::Random random_;
  const std::shared_ptr<FullStoreTally> tally_;
  bool full_ = false;  // the last create found no room
  std::deque<Held> held_;
  std::deque<Unsealed> unsealed_;
};

int Main(const std::string& socket, uint64_t seed, const std::string& tally) {
  ClientOptions options;
  options.name = absl::StrCat("program of seed ", seed);
  options.call_timeout = std::chrono::minutes(1);
  auto client = Client::Connect(socket, options);
  if (!client.ok()) {
    std::cerr << client.status() << std::endl;
    return 1;
  }
  Program(*std::move(client), base::Random(seed), FullStoreTally::Map(tally)).Run();
  return 1;
}

}  // namespace
}  // namespace tokamak::daemon

int main(int argc, char** argv) {
  uint64_t seed = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[2], &seed)) {
    std::cerr << "usage: full_store_program SOCKET SEED TALLY\n";
    return 2;
  }
  return tokamak::daemon::Main(argv[1], seed, argv[3]);
}
