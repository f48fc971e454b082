// Features of this machine's processor.
#pragma once

namespace tokamak::os {

// True if it has instructions for AES and for GCM's multiplication.
bool ProcessorHasAes();

}  // namespace tokamak::os
