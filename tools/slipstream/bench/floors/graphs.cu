// CUDA alternatives with a graph, which must be known beforehand: replay of several shapes, and what building one costs.
#include "tools/slipstream/bench/floors/body_kernels.cuh"
#include "tools/slipstream/bench/floors/floor_groups.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/floors/kernel_graph.cuh"
#include <set>

namespace slipstream::bench {
namespace {

using namespace floor_names;

// A family of graphs: `count` says how long. Data are words that start at 0 and should all be `result(count)` after one replay.
struct graph_shape {
    u64 words;     ///< checked; 0: bodies write nothing
    u64 scratch;   ///< not checked
    u32 per_count; ///< nodes that a figure is divided by, for each unit of count
    std::function<void(kernel_graph&, u32* data, u32* scratch, u32 count)> build;
    std::function<u32(u32 count)> result;
    u64 words_each = 0; ///< that are written, for each unit of count; 0: all of them
};

bool right(const graph_shape& shape, const floor_memory<u32>& data, u32 count)
{
    if (shape.words == 0) return true;
    std::vector<u32> words = data.read();
    if (shape.words_each != 0) words.resize(shape.words_each * count);
    return all_equal(words, shape.result(count));
}

graph_shape chain_shape(u32 bytes, u32 blocks)
{
    const u32 words = bytes / 4;
    return {static_cast<u64>(words) * blocks, 0, 1,
            [=](kernel_graph& graph, u32* data, u32*, u32 count) {
                std::vector<cudaGraphNode_t> last;
                for (u32 i = 1; i <= count; ++i) last = {graph.add(last, blocks, graph.kernels.step, data, words, i)};
            },
            steps_from_zero};
}

graph_shape parallel_shape(u32 bytes, u32 chains)
{
    const u32 words = bytes / 4;
    return {static_cast<u64>(words) * chains, 0, chains,
            [=](kernel_graph& graph, u32* data, u32*, u32 count) {
                std::vector<std::vector<cudaGraphNode_t>> last(chains);
                for (u32 i = 1; i <= count; ++i)
                    for (u32 c = 0; c < chains; ++c)
                        last[c] = {graph.add(last[c], 1, graph.kernels.step, data + static_cast<u64>(c) * words, words, i)};
            },
            steps_from_zero};
}

// Nodes without edges, `width` for each unit of count, each with words of its own; data are those of the largest count measured.
graph_shape flat_shape(u32 bytes, u32 width, u32 count_max)
{
    const u32 words = bytes / 4;
    const u64 words_each = static_cast<u64>(words) * width;
    return {words_each * count_max, 0, width,
            [=](kernel_graph& graph, u32* data, u32*, u32 count) {
                for (u32 i = 0; i < count * width; ++i)
                    graph.add({}, 1, graph.kernels.step, data + static_cast<u64>(i) * words, words, 1);
            },
            [](u32) { return steps_from_zero(1); }, words_each};
}

graph_shape fan_shape(u32 width)
{
    return {body_words, static_cast<u64>(body_words) * width, 1,
            [=](kernel_graph& graph, u32* source, u32* parts, u32 count) {
                std::vector<cudaGraphNode_t> last;
                u32 number = 1;
                for (u32 round = 0; round < count; ++round) {
                    const cudaGraphNode_t producer = graph.add(last, 1, graph.kernels.step, source, body_words, number++);
                    std::vector<cudaGraphNode_t> readers;
                    for (u32 k = 0; k < width; ++k)
                        readers.push_back(graph.add({producer}, 1, graph.kernels.relay, source,
                                                    parts + static_cast<u64>(k) * body_words, number++));
                    last = {graph.add(readers, 1, graph.kernels.join, parts, width, source, number++)};
                }
            },
            [=](u32 count) { return fan_result(width, count); }};
}

floor_result measure_replay(const graph_shape& shape, edge_kind edges, u32 count, u32 repeats)
{
    const floor_memory<u32> data(std::max<u64>(shape.words, 1)), scratch(std::max<u64>(shape.scratch, 1));
    gpu_timer timer;
    kernel_graph graphs[2] = {kernel_graph(edges), kernel_graph(edges)}; // of count and 2 * count
    for (u32 i = 0; i < 2; ++i) {
        shape.build(graphs[i], data.get(), scratch.get(), (i + 1) * count);
        graphs[i].finish(timer.stream());
    }
    bool good = true;
    const auto run = [&](u32 length, u32) {
        data.clear(timer.stream());
        const double us = timer.us([&] { graphs[length == count ? 0 : 1].replay(timer.stream()); });
        good &= right(shape, data, length);
        return us / shape.per_count;
    };
    std::vector<double> us = floor_slopes(run, count, repeats);
    return {std::move(us), good, {}, unchecked_note(shape.words)};
}

// Build, instantiate, upload: microseconds a node.
floor_result measure_build(const graph_shape& shape, u32 count, u32 repeats)
{
    const floor_memory<u32> data(std::max<u64>(shape.words, 1)), scratch(std::max<u64>(shape.scratch, 1));
    gpu_timer timer;
    std::vector<double> us;
    bool good = true;
    for (u32 i = 0; i < repeats; ++i) {
        data.clear(timer.stream());
        check_cuda(cudaStreamSynchronize(timer.stream()), "cudaMemset");
        const auto start = std::chrono::steady_clock::now();
        kernel_graph graph(edge_kind::full);
        shape.build(graph, data.get(), scratch.get(), count);
        graph.finish(timer.stream());
        us.push_back(us_since(start) / graph.nodes());
        graph.replay(timer.stream());
        check_cuda(cudaStreamSynchronize(timer.stream()), "cudaGraphLaunch");
        good &= right(shape, data, count);
    }
    return {std::move(us), good, {}, unchecked_note(shape.words)};
}

} // namespace

void add_graph_alternatives(std::vector<floor_entry>& to)
{
    const auto replay = [&](std::string name, graph_shape shape, u32 count, edge_kind edges = edge_kind::full) {
        to.push_back(
            {std::move(name), "us", floor_kind::alternative, [=](u32 n) { return measure_replay(shape, edges, count, n); }});
    };
    const auto build = [&](std::string name, graph_shape shape, u32 count) {
        to.push_back({std::move(name), "us", floor_kind::alternative, [=](u32 n) { return measure_build(shape, count, n); }});
    };
    std::set<u32> widths{2, 16, 50, 131, 500};
    for (const u32 an_sm : {1u, 2u}) widths.insert(an_sm * current_gpu().sms - 1); // as wide as the workers
    for (const edge_kind edges : {edge_kind::full, edge_kind::early}) {
        for (const u32 bytes : {0u, 4u, 4096u}) replay(graph_chain(bytes, edges), chain_shape(bytes, 1), 1000, edges);
        for (const u32 blocks : widths) replay(graph_wide_chain(blocks, edges), chain_shape(4096, blocks), 300, edges);
        for (const u32 bytes : {0u, 4u, 4096u}) replay(graph_parallel(bytes, edges), parallel_shape(bytes, 128), 16, edges);
        for (const u32 width : {2u, 8u}) replay(graph_fan(width, edges), fan_shape(width), 100, edges);
    }
    for (const u32 bytes : {0u, 4096u}) replay("graph replay, no edges, " + size_text(bytes), flat_shape(bytes, 128, 32), 16);
    build("graph build, instantiate, upload: chain, a node", chain_shape(4096, 1), 1000);
    build("graph build, instantiate, upload: 128 parallel chains, a node", parallel_shape(4096, 128), 16);
    build("graph build, instantiate, upload: no edges, a node", flat_shape(4096, 128, 32), 32);
}

} // namespace slipstream::bench
