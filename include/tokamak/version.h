// Which release of the library a program runs with.
#pragma once

namespace tokamak {

// "0.1.0", or "0.1.0 (126c5fe1f4d2)" if the build knew its commit. The text lives for ever.
const char* Version();

}  // namespace tokamak
