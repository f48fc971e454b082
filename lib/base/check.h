// CHECK and its kin: a broken law of ours ends the process with one line that names it.
//
//   CHECK(ring.empty()) << "seen at the end of " << name;
//   CHECK_EQ(sent, bytes.size());                       // shows both values
//   Object& object = *CHECK_NOTNULL(table.Find(id));
//   PCHECK(close(descriptor) == 0);                     // shows errno
//
// Never for input from outside, which gets a Status. DCHECK is compiled out with NDEBUG.
//
// Thread rule: any thread. The line goes where the log goes (lib/base/log.h), then abort().
#pragma once

#include <cerrno>
#include <ostream>
#include <string>

namespace tokamak::base::internal {

// The line of a broken CHECK. Its destruction writes it and ends the process.
class CheckFailure final {
 public:
  // Shows the reason of `error`, an errno, behind all else; 0: none.
  CheckFailure(const char* file, int line, const char* condition, int error = 0);
  // Takes over `comparison`, of FailedComparison::Take.
  CheckFailure(const char* file, int line, const std::string* comparison);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure();

  std::ostream& stream() { return stream_; }

 private:
  const char* const file_;
  const int line_;
  const int error_;
  std::ostream& stream_;
};

// Makes a statement of a streamed expression: `a ? (void)0 : Statement() & stream << ...`.
struct Statement {
  void operator&(const std::ostream&) const {}
};

// Writes "first == second (1 vs. 2) ".
class FailedComparison final {
 public:
  explicit FailedComparison(const char* text);
  FailedComparison(const FailedComparison&) = delete;
  FailedComparison& operator=(const FailedComparison&) = delete;
  ~FailedComparison();

  std::ostream& First() { return stream_; }
  std::ostream& Second();
  const std::string* Take();  // the caller's to delete

 private:
  std::ostream& stream_;
};

// Bytes are numbers, not letters.
template <typename T>
const T& Shown(const T& value) {
  return value;
}
inline int Shown(unsigned char value) { return value; }
inline int Shown(signed char value) { return value; }

template <typename A, typename B>
[[gnu::noinline, gnu::cold]] const std::string* Compared(const A& first, const B& second, const char* text) {
  FailedComparison failed(text);
  failed.First() << Shown(first);
  failed.Second() << Shown(second);
  return failed.Take();
}

// Return null where the comparison holds.
#define TOKAMAK_COMPARE(name, op)                                                   \
  template <typename A, typename B>                                                 \
  const std::string* name(const A& first, const B& second, const char* text) {      \
    if (__builtin_expect(static_cast<bool>(first op second), true)) return nullptr; \
    return Compared(first, second, text);                                           \
  }
TOKAMAK_COMPARE(Equal, ==)
TOKAMAK_COMPARE(Unequal, !=)
TOKAMAK_COMPARE(Less, <)
TOKAMAK_COMPARE(LessOrEqual, <=)
TOKAMAK_COMPARE(Greater, >)
TOKAMAK_COMPARE(GreaterOrEqual, >=)
#undef TOKAMAK_COMPARE

template <typename T>
T NotNull(const char* file, int line, const char* text, T&& pointer) {
  if (__builtin_expect(pointer == nullptr, false)) CheckFailure(file, line, text);
  return static_cast<T&&>(pointer);
}

}  // namespace tokamak::base::internal

#define TOKAMAK_FAIL_UNLESS(condition, ...)            \
  __builtin_expect(static_cast<bool>(condition), true) \
      ? (void)0                                        \
      : ::tokamak::base::internal::Statement() &       \
            ::tokamak::base::internal::CheckFailure(__FILE__, __LINE__, __VA_ARGS__).stream()

// A loop, so that an `else` behind it belongs to the `if` before it. Evaluates each operand once.
#define TOKAMAK_FAIL_UNLESS_COMPARED(name, op, first, second)                                \
  while (const std::string* const tokamak_failed =                                           \
             ::tokamak::base::internal::name((first), (second), #first " " #op " " #second)) \
  ::tokamak::base::internal::CheckFailure(__FILE__, __LINE__, tokamak_failed).stream()

#define CHECK(condition) TOKAMAK_FAIL_UNLESS(condition, #condition)
#define PCHECK(condition) TOKAMAK_FAIL_UNLESS(condition, #condition, errno)
#define CHECK_NOTNULL(pointer) ::tokamak::base::internal::NotNull(__FILE__, __LINE__, #pointer " != nullptr", (pointer))

#define CHECK_EQ(first, second) TOKAMAK_FAIL_UNLESS_COMPARED(Equal, ==, first, second)
#define CHECK_NE(first, second) TOKAMAK_FAIL_UNLESS_COMPARED(Unequal, !=, first, second)
#define CHECK_LT(first, second) TOKAMAK_FAIL_UNLESS_COMPARED(Less, <, first, second)
#define CHECK_LE(first, second) TOKAMAK_FAIL_UNLESS_COMPARED(LessOrEqual, <=, first, second)
#define CHECK_GT(first, second) TOKAMAK_FAIL_UNLESS_COMPARED(Greater, >, first, second)
#define CHECK_GE(first, second) TOKAMAK_FAIL_UNLESS_COMPARED(GreaterOrEqual, >=, first, second)

#ifdef NDEBUG
#define TOKAMAK_DCHECK(check) \
  while (false) check
#else
#define TOKAMAK_DCHECK(check) check
#endif
#define DCHECK(condition) TOKAMAK_DCHECK(CHECK(condition))
#define DCHECK_LT(first, second) TOKAMAK_DCHECK(CHECK_LT(first, second))
#define DCHECK_GT(first, second) TOKAMAK_DCHECK(CHECK_GT(first, second))
