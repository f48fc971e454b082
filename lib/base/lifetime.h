// Lifetime shows, after a call out, whether the object was dropped meanwhile.
//
//   const base::Lifetime::Watch watch = lifetime_.Watched();
//   callback();                      // may drop us
//   if (watch.over()) return;
//
// A callback that is stored beyond its object's life captures a Watch, too; if the call returns a
// handle (handle.h), keep that as a member instead. Thread rule: one loop.
#pragma once

#include <memory>

namespace tokamak::base {

class Lifetime final {
 public:
  class Watch final {
   public:
    bool over() const { return *over_; }

   private:
    friend class Lifetime;
    explicit Watch(std::shared_ptr<const bool> over) : over_(std::move(over)) {}
    std::shared_ptr<const bool> over_;
  };

  Lifetime() : over_(std::make_shared<bool>(false)) {}
  ~Lifetime() { *over_ = true; }
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  Watch Watched() const { return Watch(over_); }

 private:
  const std::shared_ptr<bool> over_;
};

}  // namespace tokamak::base
