// The device the command line names; what is wrong with the name is bad usage, not a failed run.
#pragma once
#include "host/engines/engine.hpp"
#include <memory>
#include <string>

namespace slipstream::cli {

/// Throws usage_error unless the name is auto, cuda, cuda:N or host.
void check_device_name(const std::string& name);

/// Opens it; throws usage_error when there is no such device here.
std::unique_ptr<engines::device_memory> open_named_device(const std::string& name);

} // namespace slipstream::cli
