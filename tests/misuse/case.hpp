// What every case of misuse starts from.
#pragma once
#include <slipstream/runtime.hpp>
#include <utility>

using namespace slipstream;

#define EMPTY_BODY template <class Block> SLIPSTREAM_BODY void operator()(Block&) const {}
