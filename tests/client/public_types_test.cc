// The public value types: statuses, results, spans and time-outs.
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tokamak/span.h"
#include "tokamak/status.h"
#include "tokamak/timeout.h"

namespace tokamak {
namespace {

using ByteSpan = Span<const uint8_t>;

// ---- Status

TEST(StatusTest, AStatusIsOkByDefault) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().ToString(), "OK");
  EXPECT_EQ(Status(StatusCode::kOk, "dropped"), Status());
}

TEST(StatusTest, AStatusPrintsItsCodeAndItsMessage) {
  const Status status(StatusCode::kNotFound, "no node holds it");
  std::ostringstream out;
  out << status;
  EXPECT_EQ(out.str(), "NOT_FOUND: no node holds it");
  EXPECT_EQ(status.message(), "no node holds it");
  EXPECT_NE(status, Status(StatusCode::kNotFound, "another"));
}

TEST(StatusTest, CodesHaveTheirUsualNames) {
  for (int code = 0; code <= 16; ++code) {
    EXPECT_EQ(NameOf(static_cast<StatusCode>(code)), absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
  }
  EXPECT_STREQ(NameOf(static_cast<StatusCode>(17)), "UNKNOWN");
}

// ---- Result

TEST(ResultTest, HoldsAValueOrAnError) {
  Result<std::string> value = "text";
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value.status(), Status());
  EXPECT_EQ(value->size(), 4u);
  EXPECT_EQ(*value, "text");
  const Result<std::string> error = Status(StatusCode::kAborted, "why");
  EXPECT_FALSE(error.ok());
  EXPECT_EQ(error.status().code(), StatusCode::kAborted);
}

TEST(ResultTest, AValueThatCannotBeCopiedIsMovedOut) {
  const auto make = []() -> Result<std::unique_ptr<int>> {
    auto made = std::make_unique<int>(7);
    return made;
  };
  const std::unique_ptr<int> seven = *make();
  EXPECT_EQ(*seven, 7);
  EXPECT_FALSE((std::is_convertible_v<int, Result<std::string>>));
}

TEST(ResultDeathTest, AskingForAMissingValueSaysWhyAndEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Result<int> error = Status(StatusCode::kAborted, "the reason");
  EXPECT_DEATH((void)*error, "there is none: ABORTED: the reason");
  EXPECT_DEATH(Result<int>{Status()}, "needs a value, or an error");
}

// ---- Span

TEST(SpanTest, LooksAtContainersOfBytes) {
  std::vector<uint8_t> vector = {1, 2, 3};
  const std::string string = "abc";
  const std::array<uint8_t, 2> array = {4, 5};
  const uint8_t plain[] = {6};
  EXPECT_EQ(ByteSpan(vector).data(), vector.data());
  EXPECT_EQ(ByteSpan(string)[0], 'a');
  EXPECT_EQ(ByteSpan(array).size(), 2u);
  EXPECT_EQ(ByteSpan(plain).back(), 6);
  EXPECT_EQ(ByteSpan(std::string_view("xyz")).size_bytes(), 3u);
  EXPECT_EQ(ByteSpan(Span<uint8_t>(vector)), ByteSpan(vector));
  const Span<uint8_t> writable = vector;
  writable[0] = 9;
  EXPECT_EQ(vector[0], 9);
}

TEST(SpanTest, OtherTypesDoNotConvertToASpan) {
  EXPECT_FALSE((std::is_convertible_v<std::vector<int>&, ByteSpan>));
  EXPECT_FALSE((std::is_convertible_v<const std::vector<uint8_t>&, Span<uint8_t>>)) << "it is const";
  EXPECT_FALSE((std::is_convertible_v<std::vector<uint8_t>, Span<uint8_t>>)) << "it is a temporary";
  EXPECT_TRUE((std::is_convertible_v<std::vector<uint8_t>, ByteSpan>)) << "as an argument";
  EXPECT_FALSE((std::is_convertible_v<const char(&)[4], ByteSpan>)) << "with or without the zero?";
  EXPECT_FALSE((std::is_constructible_v<std::string, Span<int>>));
}

TEST(SpanTest, CopiesToStringsAndVectorsWhenAsked) {
  const std::string text = "hello";
  const ByteSpan bytes = text;
  EXPECT_EQ(std::string(bytes), text);
  EXPECT_EQ(std::vector<uint8_t>(bytes), (std::vector<uint8_t>{'h', 'e', 'l', 'l', 'o'}));
  EXPECT_EQ(AsText(bytes).data(), text.data());
  EXPECT_FALSE((std::is_convertible_v<ByteSpan, std::string>)) << "a copy is asked for";
}

TEST(SpanTest, PartsOfASpanAreWithinIt) {
  const std::vector<uint8_t> vector = {1, 2, 3, 4};
  const ByteSpan bytes = vector;
  EXPECT_EQ(bytes.first(1), (ByteSpan{{1}}));
  EXPECT_EQ(bytes.last(2), (ByteSpan{{3, 4}}));
  EXPECT_EQ(bytes.subspan(1, 2), (ByteSpan{{2, 3}}));
  EXPECT_EQ(bytes.subspan(4), ByteSpan());
  EXPECT_NE(bytes.first(2), bytes.last(2));
}

// ---- Timeout

TEST(TimeoutTest, ATimeoutIsAnyDurationUpToADay) {
  using std::chrono::nanoseconds;
  const nanoseconds day = std::chrono::hours(24);
  EXPECT_EQ(Timeout().duration(), nanoseconds(0));
  EXPECT_EQ(Timeout(std::chrono::seconds(5)).duration(), nanoseconds(5'000'000'000));
  EXPECT_EQ(Timeout(std::chrono::duration<double>(0.25)).duration(), nanoseconds(250'000'000));
  EXPECT_EQ(Timeout(nanoseconds(1)).duration(), nanoseconds(1));
  EXPECT_EQ(Timeout(-std::chrono::seconds(1)).duration(), nanoseconds(0));
  EXPECT_EQ(Timeout(std::chrono::hours(25)).duration(), day);
  EXPECT_EQ(Timeout(std::chrono::hours::max()).duration(), day) << "which is no span of nanoseconds any more";
  EXPECT_EQ(Timeout(nanoseconds::max()).duration(), day);
  EXPECT_EQ(Timeout(nanoseconds::min()).duration(), nanoseconds(0));
  EXPECT_EQ(Timeout(std::chrono::duration<double>(std::numeric_limits<double>::infinity())).duration(), day);
  EXPECT_EQ(Timeout(std::chrono::duration<double>(std::nan(""))).duration(), nanoseconds(0));
  EXPECT_EQ(Timeout::Longest().duration(), day);
}

}  // namespace
}  // namespace tokamak
