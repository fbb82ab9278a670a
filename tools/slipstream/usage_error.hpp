// Bad usage of the command line.
#pragma once
#include <stdexcept>

namespace slipstream::cli {

/// The command line cannot be carried out: what() is one line that ends in the remedy.
class usage_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

} // namespace slipstream::cli
