// Formats a program's command to a device as a line for people, as strace does:
//
//   reg_mr(pd 1, address 0x7f00, length 4096, access local_write) = mr 2, lkey 0x1b2, rkey 0x1b2
//   create_qp(type XRC_SEND, pd 1, ...) = Operation not supported
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <string>

#include "lib/verbs/kernel/program/command.h"

namespace tokamak::verbs::kernel {

std::string Explain(const Command& command, int error);

std::string ExplainManager(const void* buffer, size_t size, int error);

}  // namespace tokamak::verbs::kernel
