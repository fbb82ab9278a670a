// Compiled by the C++ compiler alone: tasks run on the host device.
#include "consumer.hpp"

int main() { return run_consumer("host"); }
