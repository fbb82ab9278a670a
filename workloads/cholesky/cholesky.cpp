// The generator and the check.
//
// A = c I + R, R symmetric with elements uniform in [-1, 1), c = sqrt(3 n). The eigenvalues of R fill [-r, r] with r = 2 sqrt(n /
// 3), two thirds of c: A is positive definite, but for a chance below e^(-n/2), with a condition number near 5. A diagonally
// dominant matrix would be nearly diagonal, and a forgotten update would drown in rounding errors.
#include "workloads/cholesky/cholesky.hpp"
#include "workloads/cholesky/cholesky_image.hpp"
#include "workloads/cholesky/cholesky_reference.hpp"
#include "workloads/cholesky/cholesky_tasks.hpp"
#include "workloads/tiles/error_measure.hpp"
#include "workloads/tiles/tile_parameters.hpp"

namespace slipstream::workloads {
namespace {

const parameters& defaults()
{
    static const parameters values{{"tiles", "16"}, {"tile", "32"}, {"precision", "fp32"}, {"handles", "1"}};
    return values;
}

template <class T>
std::vector<T> make_matrix(u32 n, u64 seed)
{
    std::vector<T> a(u64{n} * n);
    for (u32 i = 0; i < n; ++i)
        for (u32 j = 0; j <= i; ++j) {
            const double shift = i == j ? std::sqrt(3.0 * n) : 0;
            a[u64{i} * n + j] = a[u64{j} * n + i] = static_cast<T>(shift + random_element(seed, i, j));
        }
    return a;
}

/// A x from the lower triangle.
template <class T>
std::vector<double> multiply_symmetric(const std::vector<T>& a, const std::vector<double>& x)
{
    const std::size_t n = x.size();
    std::vector<double> y(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
        const T* const row = &a[i * n];
        double sum = row[i] * x[i];
        for (std::size_t j = 0; j < i; ++j) {
            sum += row[j] * x[j];
            y[j] += row[j] * x[i];
        }
        y[i] += sum;
    }
    return y;
}

/// L (L^T x) from the lower triangle.
template <class T>
std::vector<double> multiply_factors(const std::vector<T>& l, const std::vector<double>& x)
{
    const std::size_t n = x.size();
    std::vector<double> inner(n, 0), y(n, 0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j <= i; ++j) inner[j] += l[i * n + j] * x[i];
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j <= i; ++j) y[i] += l[i * n + j] * inner[j];
    return y;
}

template <class T>
class tile_cholesky final : public workload {
public:
    tile_cholesky(engines::device_memory& device, const kernel_image& image, const tiling& t, u64 seed)
        : t_(t), program_(image), matrix_(device, program_, t), initial_(make_matrix<T>(t.side(), seed))
    {
        add_tasks();
        for (u32 number = 0; number < probes; ++number) {
            probes_.push_back(probe(t.side(), seed, number));
            images_.push_back(multiply_symmetric(initial_, probes_.back()));
        }
        if (t.side() > cholesky_reference_side_max) return;
        reference_.assign(initial_.begin(), initial_.end());
        factor_cholesky(reference_, t.side());
    }

    std::string name() const override { return "cholesky"; }
    const engines::program& program() const override { return program_; }
    void reset() override { matrix_.write(initial_); }
    std::string check() const override
    {
        return reference_.empty() ? "residual alone: the matrix is too large for a host factorization"
                                  : "a host factorization, and residual";
    }

    verdict verify() override
    {
        const std::vector<T> result = matrix_.read();
        const std::size_t n = t_.side();
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = i + 1; j < n; ++j)
                if (result[i * n + j] != initial_[i * n + j])
                    return {false, "element (" + std::to_string(i) + ", " + std::to_string(j) + ") above the diagonal was written"};
        std::vector<error_measure> errors;
        if (!reference_.empty()) errors.push_back({"L against the host's", in_units<T>(largest_difference(result), t_.side())});
        for (u32 number = 0; number < probes; ++number) {
            const double off = distance(multiply_factors(result, probes_[number]), images_[number]);
            errors.push_back({"residual of probe " + std::to_string(number), in_units<T>(off / norm(images_[number]), t_.side())});
        }
        return judge(errors);
    }

private:
    static constexpr u32 probes = 3;

    void add_tasks()
    {
        const u32 tile_parts = cholesky::parts_of(t_.tile);
        const auto in = [&](u32 i, u32 j) { return matrix_.template tile<in2d<T>>(i, j); };
        const auto inout = [&](u32 i, u32 j) { return matrix_.template tile<inout2d<T>>(i, j); };
        const auto add = [&](u32 type, const auto& task, u32 blocks) {
            program_.add(type, &task, blocks, {}, {}, ordering::by_access, std::decay_t<decltype(task)>::name);
        };
        for (u32 k = 0; k < t_.tiles; ++k) {
            add(potrf_type, potrf_task<T>{inout(k, k)}, 1);
            for (u32 i = k + 1; i < t_.tiles; ++i) add(trsm_type, trsm_task<T>{in(k, k), inout(i, k)}, tile_parts);
            for (u32 i = k + 1; i < t_.tiles; ++i) {
                add(syrk_type, syrk_task<T>{in(i, k), inout(i, i)}, tile_parts * (tile_parts + 1) / 2);
                for (u32 j = k + 1; j < i; ++j)
                    add(gemm_type, gemm_task<T>{in(i, k), in(j, k), inout(i, j)}, tile_parts * tile_parts);
            }
        }
    }

    /// Of L and the reference, relative to the largest element; NaN where L has one.
    double largest_difference(const std::vector<T>& l) const
    {
        const std::size_t n = t_.side();
        double difference = 0, largest = 0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                const double d = std::abs(l[i * n + j] - reference_[i * n + j]);
                if (std::isnan(d)) return d;
                difference = std::max(difference, d);
                largest = std::max(largest, std::abs(reference_[i * n + j]));
            }
        return difference / largest;
    }

    tiling t_;
    engines::program program_;
    tiled_matrix<T> matrix_;
    std::vector<T> initial_;
    std::vector<double> reference_;                    ///< empty: too large
    std::vector<std::vector<double>> probes_, images_; ///< x and A x
};

std::unique_ptr<workload> make(engines::device_memory& device, const parameters& values, u64 seed)
{
    const tile_parameters p = read_tile_parameters("cholesky", defaults(), values);
    if (p.fp64) return std::make_unique<tile_cholesky<double>>(device, cholesky_fp64_image(), p.shape, seed);
    return std::make_unique<tile_cholesky<float>>(device, cholesky_fp32_image(), p.shape, seed);
}

} // namespace

workload_type cholesky_type()
{
    return {"cholesky", "tile Cholesky of a positive definite matrix, fp32 or fp64; checked by factor and residual", defaults(),
            &make};
}

} // namespace slipstream::workloads
