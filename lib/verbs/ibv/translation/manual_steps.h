// Steps that a program takes with QueuePair::Modify, where no connection manager does: which there
// are, and the agreement that their attributes are. Pure functions.
#pragma once

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// Returns true for a step towards ReadyToSend. Reset and Error are reached from any state.
bool IsStepForward(QueuePairState from, QueuePairState to);

// kInvalidArgument: a number or PSN beyond 24 bits; more READs than the device takes.
absl::StatusOr<Agreement> AgreementOf(const QueuePairAttributes& attributes, const Limits& limits);

}  // namespace tokamak::verbs::ibv
