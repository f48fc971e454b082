// ObjectId names an object: the public type (include/tokamak), for all of the tree.
#pragma once

#include "tokamak/object_id.h"

namespace tokamak::base {

using tokamak::ObjectId;

}  // namespace tokamak::base
