// A device that lacks something, made from one that has it.
#pragma once

#include <memory>

#include "lib/verbs/verbs.h"

namespace tokamak::transport::testing {

// No *WithImm, and a READ's sink needs kRemoteWrite.
std::unique_ptr<verbs::Device> LikeIwarp(std::unique_ptr<verbs::Device> device);

}  // namespace tokamak::transport::testing
