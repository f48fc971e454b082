#include "tests/verbs/conformance/backend.h"

namespace tokamak::verbs::conformance {

const char* ToString(Fault fault) {
  switch (fault) {
    case Fault::kRemoteKey:
      return "remote key";
    case Fault::kRemoteBounds:
      return "remote bounds";
    case Fault::kRemoteRight:
      return "remote right";
    case Fault::kQueuePairRight:
      return "right of the peer's queue pair";
    case Fault::kRemoteAlignment:
      return "remote alignment";
    case Fault::kLocalKey:
      return "local key";
    case Fault::kLocalRight:
      return "local right";
    case Fault::kPeerReceiveKey:
      return "peer's receive key";
    case Fault::kPeerReceiveShort:
      return "peer's receive too short";
    case Fault::kNotReady:
      return "peer not ready";
    case Fault::kPeerVanished:
      return "peer vanished";
    case Fault::kPeerInError:
      return "peer in Error";
    case Fault::kTooManyReads:
      return "too many READs";
    case Fault::kReceiveKey:
      return "receive key";
    case Fault::kReceiveRight:
      return "receive right";
    case Fault::kReceiveShort:
      return "receive too short";
  }
  return "?";
}

// The answers of the InfiniBand specification (tables 54 to 57 of volume 1, and what 9.9.2 and
// 9.9.3 leave open).
bool Backend::Accepts(Fault fault, CompletionStatus status) const {
  switch (fault) {
    case Fault::kRemoteKey:
    case Fault::kRemoteBounds:
    case Fault::kRemoteRight:
      return status == CompletionStatus::kRemoteAccess;
    case Fault::kQueuePairRight:
    case Fault::kRemoteAlignment:
      return status == CompletionStatus::kRemoteInvalidRequest || status == CompletionStatus::kRemoteAccess;
    case Fault::kLocalKey:
    case Fault::kLocalRight:
      return status == CompletionStatus::kLocalProtection;
    case Fault::kPeerReceiveKey:
      return status == CompletionStatus::kRemoteOperation;
    case Fault::kPeerReceiveShort:
    case Fault::kTooManyReads:
      return status == CompletionStatus::kRemoteInvalidRequest;
    case Fault::kNotReady:
      return status == CompletionStatus::kRnrRetryExceeded;
    case Fault::kPeerVanished:
      return status == CompletionStatus::kRetryExceeded;
    case Fault::kPeerInError:  // or the peer disconnected by itself
      return status == CompletionStatus::kRetryExceeded || status == CompletionStatus::kFlushed;
    case Fault::kReceiveKey:
    case Fault::kReceiveRight:
      return status == CompletionStatus::kLocalProtection || status == CompletionStatus::kLocalAccess;
    case Fault::kReceiveShort:
      return status == CompletionStatus::kLocalLength;
  }
  return false;
}

}  // namespace tokamak::verbs::conformance
