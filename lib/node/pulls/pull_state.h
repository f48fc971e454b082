// PullState says how far a pull has come, and which step is legal after which.
//
//   locating -> moving -> (registering) -> sealed
//   (hinted)  ^   |   \___ next holder
//     ^       |   +------> back-off
//     |       +----------- queued, bundled
//     +------------------- back-off
//
//   hinted:       a remembered place is tried while the directory is asked
//   bringing:     the remembered holder of a small object is asked for it
//   bundled:      a small object is asked for together with others of its holder
//   back-off:     all holders failed, or there is no room
//   queued:       the holders are busy with other pulls of ours
//   refreshing:   a holder's address is unknown or outdated
//   registering:  all bytes are here; the directory has not answered
//   vouching:     the directory has not answered yet, and the holder is asked to vouch for the copy
//   unvouched:    the holder does not: only the directory's answer helps
#pragma once

namespace tokamak::node {

enum class PullState {
  kNew,
  kLocating,
  kHinted,
  kBringing,
  kBackOff,
  kRefreshing,
  kQueued,
  kBundled,
  kMoving,
  kRegistering,
  kVouching,
  kUnvouched,
  kOver,
};

bool MayFollow(PullState from, PullState to);

// Returns true while it is not known which holder has the object.
inline bool IsLookedFor(PullState state) { return state == PullState::kLocating || state == PullState::kBackOff; }

// Returns true if all bytes are here, to be sealed as soon as that is allowed.
inline bool HasArrived(PullState state) {
  return state == PullState::kRegistering || state == PullState::kVouching || state == PullState::kUnvouched;
}

}  // namespace tokamak::node
