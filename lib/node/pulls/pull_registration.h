// PullRegistration is a pull's standing with the directory: the question under way, and whether a
// deletion would reach the coming copy.
//
//   unknown --the directory's answer--> entered --OnWithdraw, Forget, TakeBack--> unknown
//      |                                   |
//      +--a holder's word--> vouched ------+--Seal--> unknown: Membership goes on
//
// Law: a copy is sealed only while the directory has entered this node, or a holder vouches for it
// (docs/consistency.md).
// Law: an entry without a copy is taken back, even one that an unanswered question may have made:
// Membership announces the truth.
// Thread rule: the control loop.
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
    // Answers Ask. May destroy the registration.
    virtual void OnLocated(const absl::StatusOr<directory::LocatedObject>& info) = 0;

   protected:
    ~Owner() = default;
  };

  // References must outlive it.
  PullRegistration(PullContext& context, const base::ObjectId& id, Owner& owner)
      : context_(context), id_(id), owner_(owner) {}
  PullRegistration(const PullRegistration&) = delete;
  PullRegistration& operator=(const PullRegistration&) = delete;

  // Asks the directory where the object is, which enters this node as coming. It may wait `wait`
  // for a holder, and bring a small object if `may_bring`. Bound: one question.
  void Ask(base::Duration wait, bool may_bring);
  bool asking() const { return locate_ != nullptr; }
  // Time after which the pull goes on without the answer.
  base::Time patient_until() const { return patient_until_; }

  // Notes a usable answer: from now on the directory is asked to wait for holders, and its silence
  // is no news.
  void NoteAnswer() { answered_ = true; }
  bool answered() const { return answered_; }

  // True if the answer just come named `version`, whose entry was withdrawn since.
  bool WasWithdrawn(const base::ObjectVersion& version) const { return withdrawn_ == version; }

  // Notes that the directory has entered this node as coming to `version`.
  void Enter(const base::ObjectVersion& version);
  // Notes that a holder vouches for `version` until `until`. A directory's entry outranks it.
  void Vouch(const base::ObjectVersion& version, base::Time until);
  bool entered() const { return state_ == State::kEntered; }

  // See Copies::StaysEntered. Without a generation: whether it may be entered at all.
  bool IsComing(const base::ObjectVersion& version) const;

  // Notes that Membership withdraws `version`.
  void OnWithdraw(const base::ObjectVersion& version);
  // Notes the content deleted: the directory knows more.
  void Forget() { state_ = State::kUnknown; }
  // Takes the entry back.
  void TakeBack();
  // Ends in the task that seals the copy; Membership announces it.
  void Seal();
  // Takes back, also an entry that the question under way may have made.
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
  std::optional<base::ObjectVersion> withdrawn_;  // the last since Ask
  base::Pending locate_;
};

}  // namespace tokamak::node
