// True where a sanitizer sees every byte: it takes memory of its own beside, so that a bound of a
// process's memory says nothing.
#pragma once

namespace tokamak::support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace tokamak::support
