// Frames: messages.h's structs to bytes and back. Input is untrusted: a decoder reads no byte
// beyond its input, reserves no memory for announced sizes, and accepts exactly what an encoder
// could have made.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/base/check.h"
#include "lib/base/codec.h"
#include "lib/client/protocol/messages.h"
#include "lib/client/protocol/protocol.h"

namespace tokamak::client {

// Writes the fields that a message's Visit() lists. Fields beyond their bounds are our own mistake.
class Encoder final {
 public:
  explicit Encoder(base::Writer& writer) : writer_(writer) {}

  template <typename T>
  void Integer(T value) {
    writer_.Integer(value);
  }
  template <typename T>
  void Bounded(T value, T most) {
    CHECK_LE(value, most);
    writer_.Integer(value);
  }
  template <typename T>
  void Enum(T value) {
    writer_.Integer(static_cast<uint8_t>(value));
  }
  void Bool(bool value) { writer_.Integer<uint8_t>(value ? 1 : 0); }
  void Code(absl::StatusCode code) { writer_.Integer(static_cast<uint32_t>(code)); }
  void Id(const base::ObjectId& id) { writer_.Id(id); }
  void Bytes(absl::Span<const uint8_t> bytes, size_t most) {
    CHECK_LE(bytes.size(), most);
    writer_.Bytes(bytes);
  }
  void Text(absl::string_view text, size_t most) {
    CHECK_LE(text.size(), most);
    writer_.Text(text);
  }
  void Texts(const std::vector<std::string>& texts, size_t most, size_t longest) {
    Count(texts.size(), most);
    for (const std::string& text : texts) Text(text, longest);
  }
  void Ids(const std::vector<base::ObjectId>& ids, size_t most) {
    Count(ids.size(), most);
    for (const base::ObjectId& id : ids) Id(id);
  }
  void Flags(const std::vector<uint8_t>& flags, size_t most) {
    Count(flags.size(), most);
    for (const uint8_t flag : flags) Bool(flag != 0);
  }
  template <typename T>
  void Part(const T& part) {
    T::Visit(part, *this);
  }
  template <typename T>
  void Parts(const std::vector<T>& parts, size_t most) {
    Count(parts.size(), most);
    for (const T& part : parts) Part(part);
  }

 private:
  void Count(size_t count, size_t most) {
    CHECK_LE(count, most);
    writer_.Integer(static_cast<uint32_t>(count));
  }

  base::Writer& writer_;
};

// Reads them back. ok() is true at the end if every field was legal.
class Decoder final {
 public:
  explicit Decoder(absl::Span<const uint8_t> bytes) : reader_(bytes) {}

  template <typename T>
  void Integer(T& value) {
    value = reader_.Integer<T>();
  }
  template <typename T>
  void Bounded(T& value, T most) {
    value = reader_.Integer<T>();
    Require(value <= most);
  }
  template <typename T>
  void Enum(T& value) {
    const uint8_t raw = reader_.Integer<uint8_t>();
    Require(raw <= static_cast<uint8_t>(Last(T())));
    value = static_cast<T>(raw);
  }
  void Bool(bool& value) {
    const uint8_t raw = reader_.Integer<uint8_t>();
    Require(raw <= 1);
    value = raw == 1;
  }
  void Code(absl::StatusCode& code) {
    const uint32_t raw = reader_.Integer<uint32_t>();
    Require(raw <= kLastStatus);
    code = static_cast<absl::StatusCode>(raw);
  }
  void Id(base::ObjectId& id) { id = reader_.Id(); }
  void Bytes(absl::Span<const uint8_t>& bytes, size_t most) { bytes = reader_.Bytes(most); }
  void Text(std::string& text, size_t most) { text = reader_.Text(most); }
  void Text(absl::string_view& text, size_t most) {
    const absl::Span<const uint8_t> bytes = reader_.Bytes(most);
    text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void Texts(std::vector<std::string>& texts, size_t most, size_t longest) {
    texts.resize(reader_.Count(most, sizeof(uint32_t)));
    for (std::string& text : texts) Text(text, longest);
  }
  void Ids(std::vector<base::ObjectId>& ids, size_t most) {
    ids.resize(reader_.Count(most, base::ObjectId::kSize));
    for (base::ObjectId& id : ids) Id(id);
  }
  void Flags(std::vector<uint8_t>& flags, size_t most) {
    flags.resize(reader_.Count(most, 1));
    for (uint8_t& flag : flags) {
      flag = reader_.Integer<uint8_t>();
      Require(flag <= 1);
    }
  }
  template <typename T>
  void Part(T& part) {
    T::Visit(part, *this);
  }
  template <typename T>
  void Parts(std::vector<T>& parts, size_t most) {
    parts.resize(reader_.Count(most, LeastSize<T>()));
    for (T& part : parts) Part(part);
  }

  bool ok() const { return legal_ && reader_.Complete(); }

  static constexpr uint32_t kLastStatus = static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);

 private:
  void Require(bool legal) { legal_ = legal_ && legal; }

  // The encoded size of an empty T.
  template <typename T>
  static size_t LeastSize() {
    static const size_t size = [] {
      base::Writer writer;
      Encoder(writer).Part(T());
      return writer.size();
    }();
    return size;
  }

  base::Reader reader_;
  bool legal_ = true;
};

// Makes a frame of a body within its bounds, of at most kMaxBody bytes.
std::vector<uint8_t> Frame(const Header& header, absl::Span<const uint8_t> body);

// Begins a frame; the body goes behind the header, the length is set last.
base::Writer BeginFrame(const Header& header);
std::vector<uint8_t> EndFrame(base::Writer frame);

template <typename M>
std::vector<uint8_t> Encode(uint64_t request_id, const M& message) {
  Header header;
  header.kind = M::kKind;
  header.request_id = request_id;
  base::Writer frame = BeginFrame(header);
  Encoder(frame).Part(message);
  return EndFrame(std::move(frame));
}

// Makes the error reply to `request`. `status` must not be OK.
std::vector<uint8_t> EncodeError(const Header& request, const absl::Status& status);

// Checks and returns the header of a whole frame. kInvalidArgument: not a frame of ours. A header
// of another version than kVersion is returned, so that the daemon can answer; nothing else of that
// frame may be read.
absl::StatusOr<Header> DecodeHeader(absl::Span<const uint8_t> frame);

inline absl::Span<const uint8_t> BodyOf(absl::Span<const uint8_t> frame) { return frame.subspan(kHeaderSize); }

// Decodes the body of a frame whose header has M::kKind and OK. kInvalidArgument: malformed. Spans
// in it point into `frame`.
template <typename M>
absl::StatusOr<M> DecodeBody(absl::Span<const uint8_t> frame) {
  M message;
  Decoder decoder(BodyOf(frame));
  decoder.Part(message);
  if (!decoder.ok()) return absl::InvalidArgumentError("malformed message");
  return message;
}

absl::Status StatusOf(const Header& header, absl::Span<const uint8_t> frame);

}  // namespace tokamak::client
