// Role is which half of a connection one is: the initiator asked for it, the responder was asked.
#pragma once

#include <cstdint>

namespace tokamak::security {

enum class Role : uint8_t { kInitiator, kResponder };

constexpr Role Opposite(Role role) { return role == Role::kInitiator ? Role::kResponder : Role::kInitiator; }

}  // namespace tokamak::security
