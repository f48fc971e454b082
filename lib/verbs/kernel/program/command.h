// Command is one command to a device, as a program writes it to /dev/infiniband/uverbs0: a header,
// a request, perhaps a driver's part behind it, and a place for the response.
//
// Untrusted: the header is checked as in the kernel's ib_uverbs_write()
// (linux/Documentation/infiniband/user_verbs, rdma/ib_user_verbs.h). Errors are errno values, 0 is
// success.
//
//   basic     ib_uverbs_cmd_hdr | request, which begins with the response's address | driver's
//   extended  ib_uverbs_cmd_hdr | ib_uverbs_ex_cmd_hdr | request | driver's
//
// The written bytes are readable; memory that they point to may be missing (EFAULT). Lifetime:
// points into the program's buffer.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "lib/verbs/kernel/program/program_memory.h"

namespace tokamak::verbs::kernel {

class Command final {
 public:
  // `buffer` has the written bytes. EINVAL: lengths that do not fit each other, reserved bits.
  static int Decode(const void* buffer, size_t size, Command* command);

  uint32_t number() const { return number_; }  // IB_USER_VERBS_CMD_*
  bool extended() const { return extended_; }

  // Reads the request. ENOSPC: it is shorter than a T. The rest of a longer one is ignored.
  template <typename T>
  int Get(T* request) const {
    if (request_.size() < sizeof(T)) return ENOSPC;
    std::memcpy(static_cast<void*>(request), request_.data(), sizeof(T));
    return 0;
  }

  // Reads the driver's part of a request whose first part is a `Request`.
  template <typename Request, typename T>
  int GetDriver(T* driver) const {
    if (!extended_ && request_.size() < sizeof(Request)) return ENOSPC;
    const absl::Span<const uint8_t> part = extended_ ? driver_ : request_.subspan(sizeof(Request));
    if (part.size() < sizeof(T)) return EINVAL;
    std::memcpy(static_cast<void*>(driver), part.data(), sizeof(T));
    return 0;
  }

  // Writes the response, as much as there is room for, and zeros behind a short one. ENOSPC: there
  // is no room for that of a basic command. EFAULT.
  template <typename T>
  int Put(const T& response) const {
    return PutBytes(&response, sizeof(T));
  }

  // The same with a driver's part. EINVAL: there is no room for that.
  template <typename T, typename Driver>
  int Put(const T& response, const Driver& driver) const {
    return PutBytes(&response, sizeof(T), &driver, sizeof(Driver));
  }

  // Reads the response back, after a successful Put. Returns false if it is shorter.
  template <typename T>
  bool GetResponse(T* response) const {
    return room_ >= sizeof(T) && CopyFromProgram(response_, response, sizeof(T)) == 0;
  }

  // Returns how much of a T the program takes: the response_length of extended commands.
  template <typename T>
  uint32_t Taken() const {
    return static_cast<uint32_t>(std::min(room_, sizeof(T)));
  }

 private:
  int DecodeExtended(absl::Span<const uint8_t> rest, size_t in_words, size_t out_words);
  int PutBytes(const void* response, size_t size) const;
  int PutBytes(const void* response, size_t size, const void* driver, size_t driver_size) const;

  uint32_t number_ = 0;
  bool extended_ = false;
  absl::Span<const uint8_t> request_;
  absl::Span<const uint8_t> driver_;  // extended commands
  uint64_t response_ = 0;             // its address
  size_t room_ = 0;                   // for the response; in a basic command, including the driver's part
  size_t driver_room_ = 0;            // extended commands
};

}  // namespace tokamak::verbs::kernel
