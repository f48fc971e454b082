// ISA-L's CRC by libdeflate: Debian has no static ISA-L. It takes three times as long (7 GB/s).
#include <isa-l/crc.h>
#include <libdeflate.h>

extern "C" uint32_t crc32_gzip_refl(uint32_t seed, const unsigned char* bytes, uint64_t length) {
  return libdeflate_crc32(seed, bytes, length);
}
