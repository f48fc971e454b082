// ObjectKeep is one object that a node which leaves asks this one to keep: it is pulled as for a
// program of this node, the directory knows of it, and it is never evicted.
//
// It answers as soon as it can tell, with a reason: a node that leaves has little time, asks the
// next one, and asks again when it likes. Nothing is waited for here but the bytes and the
// directory's word: not what was deleted, not room, not an id that is in use.
// Law: kKept is said of what is sealed here, kept, and known to the directory: a deletion finds it.
// Law: a node that leaves itself keeps nothing for others.
// Law: what is kept for others leaves a part of the store to this node's programs: it is never
// evicted, and whoever is a peer can ask for it.
//
//   on the wire, service kObjects:
//   keep     [2]  id  generation  data size  metadata size   -> [Answer]
//   how far  [8]  count  (id  generation) ...                -> bytes that have come, of each
//
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/copies/dropped_versions.h"
#include "lib/node/pulls/pull_table.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"

namespace tokamak::node {

class ObjectKeep final : public base::Handle {
 public:
  enum class Answer : uint8_t {
    kKept = 1,
    kNoRoom = 2,
    kInUse = 3,    // the id: another content has it, or a program is creating or still reading one
    kGone = 4,     // as far as this node knows it was deleted, or nobody has it
    kLater = 5,    // the directory, or who has it, could not be asked
    kLeaving = 6,  // this node leaves, too
  };
  static constexpr Answer kLastAnswer = Answer::kLeaving;

  // Beyond this nothing is kept for others: the 16th part of the store is what its programs may have.
  static constexpr uint64_t kPartOfPrograms = 16;

  static constexpr size_t kMaxAskedAbout = 64;  // objects of one HowFar; more is malformed

  struct Request {
    base::ObjectVersion version;
    uint64_t data_size = 0;
    uint64_t metadata_size = 0;

    uint64_t total_size() const { return data_size + metadata_size; }
  };
  static std::vector<uint8_t> EncodeRequest(const Request& request);
  // Nothing: no request that a peer would send.
  static std::optional<Request> DecodeRequest(absl::Span<const uint8_t> bytes);
  static std::vector<uint8_t> EncodeAnswer(Answer answer);
  // Nothing: no answer that a peer would send.
  static std::optional<Answer> DecodeAnswer(absl::Span<const uint8_t> bytes);

  static std::vector<uint8_t> EncodeHowFar(absl::Span<const base::ObjectVersion> versions);
  static std::optional<std::vector<base::ObjectVersion>> DecodeHowFar(absl::Span<const uint8_t> bytes);
  static std::vector<uint8_t> EncodeFar(absl::Span<const uint64_t> bytes_come);
  // Nothing: not an answer about `count` objects.
  static std::optional<std::vector<uint64_t>> DecodeFar(absl::Span<const uint8_t> bytes, size_t count);

  // What it works with. All references must outlive it.
  struct Services {
    base::EventLoop& loop;
    store::Store& store;
    PullTable& pulls;
    Membership& membership;
    const DroppedVersions& dropped;
    const size_t& evacuations;  // of this node, under way
    base::Duration deadline;    // of a question to the directory
  };

  // May answer at once; then there is nothing to wait for, and it may be dropped.
  ObjectKeep(const Services& services, const Request& request, transport::Reply reply);

 private:
  bool leaving() const { return services_.evacuations > 0 || services_.membership.left(); }
  bool IsHere() const;
  // Whether the programs have their part of the store beside an object of that size.
  bool LeavesRoom(uint64_t data_size, uint64_t metadata_size) const;
  void Try();
  Answer WhyNot() const;
  void Pulled(const absl::Status& status);
  void KeepWhenAnnounced();
  void Keep(const absl::Status& announced);
  void Say(Answer answer) { reply_(EncodeAnswer(answer)); }

  const Services services_;
  const Request request_;
  const transport::Reply reply_;
  base::Pending step_;  // the pull, then the directory's word
};

}  // namespace tokamak::node
