// A device that lacks something, made from one that has it.
#pragma once

#include <memory>

#include "lib/verbs/verbs.h"

namespace tokamak::transport::testing {

// Like iWARP: no *WithImm.
std::unique_ptr<verbs::Device> WithoutImmediate(std::unique_ptr<verbs::Device> device);

}  // namespace tokamak::transport::testing
