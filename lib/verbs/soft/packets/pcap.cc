#include "lib/verbs/soft/packets/pcap.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/verbs/soft/packets/ip_header.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kMagicNanoseconds = 0xa1b23c4d;
constexpr uint32_t kLinkTypeRaw = 101;  // starts with an IPv4 or IPv6 header
constexpr size_t kFileHeader = 24;
constexpr size_t kRecordHeader = 16;

template <typename T>
void Append(std::vector<uint8_t>* out, T value) {
  uint8_t bytes[sizeof(T)];
  base::StoreLittle<T>(bytes, value);
  out->insert(out->end(), bytes, bytes + sizeof(T));
}

void MakeUdpHeader(const Datagram& datagram, size_t udp_length, uint8_t* udp) {
  base::StoreBig16(udp, datagram.source.port);
  base::StoreBig16(udp + 2, datagram.destination.port);
  base::StoreBig16(udp + 4, static_cast<uint16_t>(udp_length));
  base::StoreBig16(udp + 6, 0);
  const size_t first = datagram.destination.is_ipv4() ? 12 : 0;
  InternetChecksum checksum;
  checksum.Add(absl::MakeConstSpan(datagram.source.ip).subspan(first));
  checksum.Add(absl::MakeConstSpan(datagram.destination.ip).subspan(first));
  checksum.Add16(17);
  checksum.Add16(static_cast<uint32_t>(udp_length));
  checksum.Add({udp, kUdpHeaderLength});
  for (const PayloadSlice& piece : datagram.pieces) checksum.Add({piece.data, piece.length});
  const uint16_t sum = checksum.Get();
  base::StoreBig16(udp + 6, sum == 0 ? 0xffff : sum);  // 0 means none
}

}  // namespace

absl::StatusOr<std::unique_ptr<PcapWriter>> PcapWriter::Create(base::EventLoop& loop, const std::string& path,
                                                               const PcapOptions& options) {
  File file(std::fopen(path.c_str(), "wbe"));
  if (file == nullptr) return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  std::setvbuf(file.get(), nullptr, _IONBF, 0);  // we buffer whole records
  std::unique_ptr<PcapWriter> writer(new PcapWriter(loop, std::move(file), options));
  writer->AppendFileHeader();
  if (absl::Status status = writer->Flush(); !status.ok()) return status;
  return writer;
}

PcapWriter::PcapWriter(base::EventLoop& loop, File file, const PcapOptions& options)
    : loop_(loop), file_(std::move(file)), options_(options) {
  waiting_.reserve(kBuffer);
}

PcapWriter::~PcapWriter() {
  if (absl::Status status = Flush(); !status.ok()) LOG(WARNING) << "capture file: " << status;
}

void PcapWriter::AppendFileHeader() {
  Append<uint32_t>(&waiting_, kMagicNanoseconds);
  Append<uint16_t>(&waiting_, 2);  // version 2.4
  Append<uint16_t>(&waiting_, 4);
  Append<uint64_t>(&waiting_, 0);  // time zone, accuracy
  Append<uint32_t>(&waiting_, options_.max_packet_bytes);
  Append<uint32_t>(&waiting_, kLinkTypeRaw);
  file_bytes_ = waiting_.size();
  static_assert(kFileHeader < kBuffer);
}

void PcapWriter::Show(const Datagram& datagram) {
  size_t udp_length = kUdpHeaderLength;
  for (const PayloadSlice& piece : datagram.pieces) udp_length += piece.length;
  uint8_t headers[kMaxIpHeader + kUdpHeaderLength];
  const size_t ip_length = WriteIpHeader({datagram.source, datagram.destination, datagram.traffic_class,
                                          datagram.identification, static_cast<uint32_t>(udp_length)},
                                         headers);
  MakeUdpHeader(datagram, udp_length, headers + ip_length);

  const size_t whole = ip_length + udp_length;
  const size_t kept = std::min<size_t>(whole, options_.max_packet_bytes);
  const uint64_t after = file_bytes_ + kRecordHeader + kept;
  if (!status_.ok() || (options_.max_file_bytes != 0 && after > options_.max_file_bytes)) {
    ++packets_left_out_;
    return;
  }
  if (waiting_.size() + kRecordHeader + kept > kBuffer) Flush().IgnoreError();

  const int64_t time = options_.epoch_nanoseconds + static_cast<int64_t>(datagram.time.picoseconds() / 1000);
  Append<uint32_t>(&waiting_, static_cast<uint32_t>(time / 1'000'000'000));
  Append<uint32_t>(&waiting_, static_cast<uint32_t>(time % 1'000'000'000));
  Append<uint32_t>(&waiting_, static_cast<uint32_t>(kept));
  Append<uint32_t>(&waiting_, static_cast<uint32_t>(whole));
  size_t left = kept;
  const auto append = [&](const uint8_t* bytes, size_t length) {
    length = std::min(length, left);
    waiting_.insert(waiting_.end(), bytes, bytes + length);
    left -= length;
  };
  append(headers, ip_length + kUdpHeaderLength);
  for (const PayloadSlice& piece : datagram.pieces) append(piece.data, piece.length);
  file_bytes_ = after;
  ++packets_written_;
  if (!flush_.armed()) flush_ = loop_.RunAfter(kFlushDelay, [this] { Flush().IgnoreError(); });
}

absl::Status PcapWriter::Flush() {
  if (status_.ok() && !waiting_.empty() &&
      std::fwrite(waiting_.data(), 1, waiting_.size(), file_.get()) != waiting_.size()) {
    status_ = absl::UnavailableError(absl::StrCat("cannot write: ", std::strerror(errno)));
  }
  waiting_.clear();
  return status_;
}

}  // namespace tokamak::verbs::soft
