#include "lib/node/pulls/pull_state.h"

#include <algorithm>
#include <initializer_list>

namespace tokamak::node {

bool MayFollow(PullState from, PullState to) {
  using State = PullState;
  const auto is_one_of = [to](std::initializer_list<State> states) {
    return std::find(states.begin(), states.end(), to) != states.end();
  };
  // The next holder is tried; or none is left, or there is no room.
  const bool tries =
      is_one_of({State::kBackOff, State::kRefreshing, State::kQueued, State::kBundled, State::kMoving, State::kOver});
  switch (from) {
    case State::kNew:
      return to == State::kLocating;
    case State::kLocating:
      return tries || is_one_of({State::kLocating, State::kHinted});
    case State::kHinted:
      return tries || to == State::kBringing;
    case State::kBringing:
    case State::kBackOff:
      return is_one_of({State::kLocating, State::kBackOff, State::kOver});
    case State::kRefreshing:
      return tries && to != State::kRefreshing;  // once in a round
    case State::kQueued:
      return tries || to == State::kLocating;
    case State::kBundled:
      return tries && to != State::kBundled;  // once in a pull
    case State::kMoving:
      return tries || to == State::kRegistering;
    case State::kRegistering:
      return is_one_of({State::kVouching, State::kBackOff, State::kOver});
    case State::kVouching:
      return is_one_of({State::kUnvouched, State::kBackOff, State::kOver});
    case State::kUnvouched:
      return is_one_of({State::kBackOff, State::kOver});
    case State::kOver:
      return false;
  }
  return false;
}

}  // namespace tokamak::node
