// Compiled by the C++ compiler alone: the engines of the host device.
#include "comparison.hpp"

int main() { return run_comparison("host"); }
