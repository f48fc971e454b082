// ObjectId names an object: the public one (include/tokamak), by which all of the tree names objects
// as programs do.
#pragma once

#include "tokamak/object_id.h"

namespace tokamak::base {

using tokamak::ObjectId;

}  // namespace tokamak::base
