// IntrusiveList links objects that live elsewhere, without allocating.
#pragma once

#include <cstddef>

#include "lib/base/check.h"

namespace tokamak::base {

// T has one as a member for each list that it may be on.
template <typename T>
struct Link {
  T* previous = nullptr;
  T* next = nullptr;
  bool listed = false;
};

template <typename T, Link<T> T::*kLink>
class IntrusiveList final {
 public:
  IntrusiveList() = default;
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }
  T* first() const { return first_; }
  static T* Next(const T* item) { return (item->*kLink).next; }
  static bool Listed(const T* item) { return (item->*kLink).listed; }

  void PushBack(T* item) {
    Link<T>& link = item->*kLink;
    DCHECK(!link.listed);
    link = {last_, nullptr, true};
    (last_ != nullptr ? (last_->*kLink).next : first_) = item;
    last_ = item;
    ++size_;
  }

  void PushFront(T* item) {
    Link<T>& link = item->*kLink;
    DCHECK(!link.listed);
    link = {nullptr, first_, true};
    (first_ != nullptr ? (first_->*kLink).previous : last_) = item;
    first_ = item;
    ++size_;
  }

  void Remove(T* item) {
    Link<T>& link = item->*kLink;
    DCHECK(link.listed);
    (link.previous != nullptr ? (link.previous->*kLink).next : first_) = link.next;
    (link.next != nullptr ? (link.next->*kLink).previous : last_) = link.previous;
    link = {};
    --size_;
  }

  T* PopFront() {
    T* item = first_;
    CHECK(item != nullptr);
    Remove(item);
    return item;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tokamak::base
