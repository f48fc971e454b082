// PcapWriter keeps datagrams in a file for Wireshark and tshark, with IP and UDP headers as on the
// wire (so that RoCEv2 is decoded), and times to the nanosecond.
//
// Whole records are written, at latest kFlushDelay after they were shown; the destructor writes the
// rest. Thread rule: one loop's thread. Writing may wait for the disk.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/packets/wire_tap.h"

namespace tokamak::verbs::soft {

struct PcapOptions {
  uint64_t max_file_bytes = 0;        // datagrams beyond it are counted and left out; 0: no bound
  uint32_t max_packet_bytes = 65535;  // of each packet, from the IP header on; the rest is cut off
  int64_t epoch_nanoseconds = 0;      // Unix time when the loop's time was zero
};

class PcapWriter final : public WireTap {
 public:
  static constexpr base::Duration kFlushDelay = base::Milliseconds(100);

  // Begins `path` anew. `loop` must outlive the writer.
  static absl::StatusOr<std::unique_ptr<PcapWriter>> Create(base::EventLoop& loop, const std::string& path,
                                                            const PcapOptions& options = {});
  ~PcapWriter() override;

  void Show(const Datagram& datagram) override;

  // Writes what waits. The first error is kept and returned each time; nothing is written after it.
  absl::Status Flush();

  uint64_t packets_written() const { return packets_written_; }
  uint64_t packets_left_out() const { return packets_left_out_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;

  static constexpr size_t kBuffer = 1 << 20;

  PcapWriter(base::EventLoop& loop, File file, const PcapOptions& options);

  void AppendFileHeader();

  base::EventLoop& loop_;
  const File file_;
  const PcapOptions options_;
  std::vector<uint8_t> waiting_;  // whole records
  uint64_t file_bytes_ = 0;       // and waiting_
  uint64_t packets_written_ = 0;
  uint64_t packets_left_out_ = 0;
  absl::Status status_;
  base::Timer flush_;
};

}  // namespace tokamak::verbs::soft
