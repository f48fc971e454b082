// Span looks at elements that lie one behind the other and belong to somebody else.
//
// It is C++20's std::span for programs in C++17, converts from and to that, and from every
// container with data() and size(). A Span of bytes (uint8_t) converts from containers of char and
// std::byte as well, such as std::string, and explicitly to std::string and std::vector:
//
//   client.Put(id, std::string("hello"));
//   std::string copy(buffer->data());
//   std::string_view text = tokamak::AsText(buffer->data());   // no copy
//   std::span<const uint8_t> bytes = buffer->data();           // in C++20
//
// Lifetime: that of what it looks at, which must stay where it is. An argument that is a Span is
// only looked at during the call. Reading outside of it is undefined, as with std::span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif

namespace tokamak {

// The library's own.
namespace internal {

template <typename T>
constexpr bool kIsByte = std::is_same_v<std::remove_cv_t<T>, char> || std::is_same_v<std::remove_cv_t<T>, uint8_t> ||
                         std::is_same_v<std::remove_cv_t<T>, std::byte>;

// Whether a Span of To may look at elements of type From: adding const is fine, a derived class is
// not.
template <typename From, typename To>
constexpr bool kMayLook = std::is_convertible_v<From (*)[], To (*)[]> ||
                          (kIsByte<From> && std::is_same_v<std::remove_cv_t<To>, uint8_t> &&
                           (std::is_const_v<To> || !std::is_const_v<From>));

template <typename Container>
using ElementOf = std::remove_pointer_t<decltype(std::declval<Container&>().data())>;

template <typename Container, typename T>
using IfSpanOf = std::enable_if_t<kMayLook<ElementOf<Container>, T> &&
                                  std::is_convertible_v<decltype(std::declval<Container&>().size()), size_t>>;

}  // namespace internal

template <typename T>
class Span final {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using size_type = size_t;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using reference = T&;
  using iterator = T*;
  using const_iterator = const T*;

  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}

  template <size_t kSize>
  constexpr Span(T (&array)[kSize]) : Span(array, kSize) {}

  // A Span of mutable elements must not view a temporary.
  template <typename Container, typename = internal::IfSpanOf<Container, T>>
  Span(Container& container) : Span(Pointer(container.data()), container.size()) {}
  template <typename Container, typename = internal::IfSpanOf<const Container, T>>
  Span(const Container& container) : Span(Pointer(container.data()), container.size()) {}

  // {a, b, c} as an argument.
  template <typename Const = T, typename = std::enable_if_t<std::is_const_v<Const>>>
  Span(std::initializer_list<value_type> elements) : Span(elements.begin(), elements.size()) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }  // elements
  constexpr size_t size_bytes() const { return size_ * sizeof(T); }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](size_t index) const { return data_[index]; }
  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }

  // All within this.
  constexpr Span first(size_t count) const { return {data_, count}; }
  constexpr Span last(size_t count) const { return {data_ + (size_ - count), count}; }
  constexpr Span subspan(size_t offset) const { return {data_ + offset, size_ - offset}; }
  constexpr Span subspan(size_t offset, size_t count) const { return {data_ + offset, count}; }

  // Copies.
  explicit operator std::vector<value_type>() const { return std::vector<value_type>(begin(), end()); }
  template <typename Byte = value_type, typename = std::enable_if_t<internal::kIsByte<Byte>>>
  explicit operator std::string() const {
    return std::string(reinterpret_cast<const char*>(data_), size_);
  }

 private:
  template <typename U>
  static constexpr T* Pointer(U* data) {
    if constexpr (std::is_convertible_v<U(*)[], T(*)[]>) {
      return data;
    } else {
      return reinterpret_cast<T*>(data);
    }
  }

  T* data_ = nullptr;
  size_t size_ = 0;
};

// Whether the elements are equal, wherever they lie.
template <typename T, typename U, typename = std::enable_if_t<std::is_same_v<std::remove_cv_t<T>, std::remove_cv_t<U>>>>
constexpr bool operator==(Span<T> a, Span<U> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) return false;
  }
  return true;
}
template <typename T, typename U, typename = std::enable_if_t<std::is_same_v<std::remove_cv_t<T>, std::remove_cv_t<U>>>>
constexpr bool operator!=(Span<T> a, Span<U> b) {
  return !(a == b);
}

// Bytes as text, without a copy.
inline std::string_view AsText(Span<const uint8_t> bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace tokamak

#if defined(__cpp_lib_span) && defined(__cpp_lib_ranges)
template <typename T>
inline constexpr bool std::ranges::enable_borrowed_range<tokamak::Span<T>> = true;
template <typename T>
inline constexpr bool std::ranges::enable_view<tokamak::Span<T>> = true;
#endif
