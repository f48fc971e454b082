#include "lib/verbs/verbs.h"

namespace tokamak::verbs {

const char* ToString(ConnectionEvent::Kind kind) {
  switch (kind) {
    case ConnectionEvent::Kind::kEstablished:
      return "established";
    case ConnectionEvent::Kind::kRejected:
      return "rejected";
    case ConnectionEvent::Kind::kUnreachable:
      return "unreachable";
    case ConnectionEvent::Kind::kDisconnected:
      return "disconnected";
  }
  return "unknown";
}

}  // namespace tokamak::verbs
