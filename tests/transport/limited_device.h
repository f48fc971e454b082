// A device that lacks something, made from one that has it, and to which a test lets things happen.
#pragma once

#include <memory>

#include "lib/verbs/verbs.h"

namespace tokamak::transport::testing {

// No *WithImm, no memory windows, a READ's sink needs kRemoteWrite, a revoked key proves nothing.
std::unique_ptr<verbs::Device> LikeIwarp(std::unique_ptr<verbs::Device> device);
std::unique_ptr<verbs::Device> WithoutWindows(std::unique_ptr<verbs::Device> device);

// Something happens to a device that one of these made: its watchers hear of it, in this call.
void Happen(verbs::Device& device, const verbs::DeviceEventInfo& info);

// Makes the next `count` peers that ask such a device for a queue pair go before they are answered.
void LoseAskers(verbs::Device& device, int count);

}  // namespace tokamak::transport::testing
