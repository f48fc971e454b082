// PullRegistration is a pull's standing with the directory: what it was asked, and whether a
// deletion would reach the copy that is coming.
//
//   unknown --the directory's answer--> entered --OnWithdraw, Forget, TakeBack--> unknown
//      |                                   |
//      +--a holder's word--> vouched ------+--Seal--> unknown: Membership goes on
//
// Law: a copy may be sealed only when the directory has entered this node as one that may hold it,
//      or when a holder vouches for it (docs/consistency.md).
// Law: an entry that nothing comes of is taken back, also one that a question without an answer may
//      have made: Membership says again what is true.
// An entry may be withdrawn while the answer that names it is on its way: WasWithdrawn.
// Thread rule: the node's control loop.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/directory/directory.h"
#include "lib/node/pulls/pull_context.h"

namespace tokamak::node {

class PullRegistration final {
 public:
  class Owner {
   public:
    // The answer to Ask. It may end the registration's life.
    virtual void OnLocated(const absl::StatusOr<directory::LocatedObject>& info) = 0;

   protected:
    ~Owner() = default;
  };

  // References must outlive it.
  PullRegistration(PullContext& context, const base::ObjectId& id, Owner& owner)
      : context_(context), id_(id), owner_(owner) {}
  PullRegistration(const PullRegistration&) = delete;
  PullRegistration& operator=(const PullRegistration&) = delete;

  // Asks the directory where the object is, which enters this node as coming to it. The answer may
  // take `wait` until there is a holder, and bring a small object where it may. One question is
  // under way at a time.
  void Ask(base::Duration wait, bool may_bring);
  bool asking() const { return locate_ != nullptr; }
  // Until when the answer to the last question is waited for before what is possible without it is
  // done.
  base::Time patient_until() const { return patient_until_; }

  // The directory has given an answer to build on. From the first one on it is asked to wait for
  // holders, and its silence is no news any more.
  void NoteAnswer() { answered_ = true; }
  bool answered() const { return answered_; }

  // The answer that has just come named `version`, but what it entered has been withdrawn since.
  bool WasWithdrawn(const base::ObjectVersion& version) const { return withdrawn_ == version; }

  // The directory has entered this node as coming to `version`.
  void Enter(const base::ObjectVersion& version);
  // A holder vouches for a copy of `version` until then. Where the directory has entered it, that
  // is worth more.
  void Vouch(const base::ObjectVersion& version, base::Time until);
  bool entered() const { return state_ == State::kEntered; }

  // See Copies::StaysEntered: without a generation, whether it may have been entered at all.
  bool IsComing(const base::ObjectVersion& version) const;

  // Membership tells the directory that `version` is not here.
  void OnWithdraw(const base::ObjectVersion& version);
  // The content was deleted: the directory knows more than this node.
  void Forget() { state_ = State::kUnknown; }
  // The copy does not come any more.
  void TakeBack();
  // Its copy is sealed in this task, and Membership announces it.
  void Seal();
  // The pull is over: TakeBack, also of what a question under way may have entered.
  void End();

 private:
  enum class State { kUnknown, kEntered, kVouched };

  void Answered(const absl::StatusOr<directory::LocatedObject>& info);

  PullContext& context_;
  const base::ObjectId id_;
  Owner& owner_;
  State state_ = State::kUnknown;
  base::ObjectVersion version_;  // kEntered, kVouched
  base::Time vouched_until_;     // kVouched
  base::Time patient_until_;
  bool answered_ = false;
  std::optional<base::ObjectVersion> withdrawn_;  // last, since the directory was asked last
  base::Pending locate_;
};

}  // namespace tokamak::node
