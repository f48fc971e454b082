// A library to be preloaded: the second address that a program asks rdma_cm to resolve takes until
// a byte can be read from the file, a named pipe, that TOKAMAK_TEST_RESOLVED names.
//
// Thread rule: the program's one thread.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

struct rdma_cm_id;
struct sockaddr;

extern "C" {

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout);

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout) {
  static int calls = 0;
  if (++calls == 2) {
    const int pipe = open(std::getenv("TOKAMAK_TEST_RESOLVED"), O_RDONLY | O_CLOEXEC);
    char byte = 0;
    if (read(pipe, &byte, 1) != 1) return -1;
    close(pipe);
  }
  using Resolve = int (*)(rdma_cm_id*, sockaddr*, sockaddr*, int);
  static const auto next = reinterpret_cast<Resolve>(dlsym(RTLD_NEXT, "rdma_resolve_addr"));
  return next(id, source, destination, timeout);
}

}  // extern "C"
