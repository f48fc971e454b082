// SPDX-License-Identifier: GPL-2.0-only
//
// The accessor of an attribute that is an enumeration, kept as an int: newer ns-3 has EnumValue as
// a template of the type, older not.
#pragma once

#include "ns3/attribute-accessor-helper.h"
#include "ns3/enum.h"

namespace tokamak::sim {

template <typename Member>
ns3::Ptr<const ns3::AttributeAccessor> EnumAccessor(Member member) {
  return ns3::MakeAccessorHelper<decltype(ns3::EnumValue(0))>(member);
}

}  // namespace tokamak::sim
