// Compiled by nvcc: all eight engines when there is a GPU that works, else those of the host device.
#include "comparison.hpp"

int main() { return run_comparison("auto"); }
