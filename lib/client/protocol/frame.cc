#include "lib/client/protocol/frame.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/bytes.h"

namespace tokamak::client {

std::vector<uint8_t> Frame(const Header& header, absl::Span<const uint8_t> body) {
  base::Writer frame = BeginFrame(header);
  frame.Raw(body);
  return EndFrame(std::move(frame));
}

base::Writer BeginFrame(const Header& header) {
  base::Writer writer;
  writer.Integer(header.magic);
  writer.Integer(header.version);
  writer.Integer(header.kind);
  writer.Integer(header.request_id);
  writer.Integer(uint32_t{0});
  writer.Integer(header.status);
  CHECK_EQ(writer.size(), kHeaderSize);
  return writer;
}

std::vector<uint8_t> EndFrame(base::Writer frame) {
  std::vector<uint8_t> bytes = frame.Take();
  const size_t body = bytes.size() - kHeaderSize;
  CHECK_LE(body, kMaxBody);
  base::StoreLittle<uint32_t>(bytes.data() + offsetof(Header, length), static_cast<uint32_t>(body));
  return bytes;
}

std::vector<uint8_t> EncodeError(const Header& request, const absl::Status& status) {
  CHECK(!status.ok());
  Header header;
  header.kind = request.kind | kReplyBit;
  header.request_id = request.request_id;
  header.status = static_cast<uint32_t>(status.code());
  const absl::string_view text = status.message().substr(0, kMaxErrorText);
  return Frame(header, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

absl::StatusOr<Header> DecodeHeader(absl::Span<const uint8_t> frame) {
  if (frame.size() < kHeaderSize) return absl::InvalidArgumentError("shorter than a header");
  base::Reader reader(frame.first(kHeaderSize));
  Header header;
  header.magic = reader.Integer<uint32_t>();
  header.version = reader.Integer<uint16_t>();
  header.kind = reader.Integer<uint16_t>();
  header.request_id = reader.Integer<uint64_t>();
  header.length = reader.Integer<uint32_t>();
  header.status = reader.Integer<uint32_t>();
  if (header.magic != kMagic) return absl::InvalidArgumentError("not the Tokamak client protocol");
  if (header.length > kMaxBody || header.length != frame.size() - kHeaderSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header announces ", header.length, " bytes, but ", frame.size() - kHeaderSize, " follow"));
  }
  if (header.status > Decoder::kLastStatus) {
    return absl::InvalidArgumentError(absl::StrCat("unknown status ", header.status));
  }
  return header;
}

absl::Status StatusOf(const Header& header, absl::Span<const uint8_t> frame) {
  if (header.status == 0) return absl::OkStatus();
  const absl::Span<const uint8_t> text = BodyOf(frame);
  return absl::Status(static_cast<absl::StatusCode>(header.status),
                      absl::string_view(reinterpret_cast<const char*>(text.data()), text.size()));
}

}  // namespace tokamak::client
