// The one include of Catch2 for the trace tests: version 3 where it is installed, else version 2's single header.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
