#include "tokamak/version.h"

#include "lib/base/version.h"

namespace tokamak {

const char* Version() { return base::kVersion; }

}  // namespace tokamak
