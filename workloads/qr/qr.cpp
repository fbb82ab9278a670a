// The generator and the check.
//
// A = c I + G, elements of G uniform in [-1, 1), c = sqrt(3 n). The norm of G is near 2 sqrt(n / 3), two thirds of c: the condition
// number of A is near 5, and R is known to within rounding errors, up to the signs of its rows.
#include "workloads/qr/qr.hpp"
#include "workloads/qr/qr_image.hpp"
#include "workloads/qr/qr_reference.hpp"
#include "workloads/qr/qr_tasks.hpp"
#include "workloads/qr/stored_q.hpp"
#include "workloads/tiles/error_measure.hpp"
#include "workloads/tiles/tile_parameters.hpp"

namespace slipstream::workloads {
namespace {

const parameters& defaults()
{
    static const parameters values{{"tiles", "12"}, {"tile", "32"}, {"precision", "fp32"}, {"handles", "1"}};
    return values;
}

template <class T>
std::vector<T> make_matrix(u32 n, u64 seed)
{
    std::vector<T> a(u64{n} * n);
    for (u32 i = 0; i < n; ++i)
        for (u32 j = 0; j < n; ++j)
            a[u64{i} * n + j] = static_cast<T>((i == j ? std::sqrt(3.0 * n) : 0) + random_element(seed, i, j));
    return a;
}

/// A x; with `upper` only the upper triangle of A counts.
template <class T>
std::vector<double> multiply(const std::vector<T>& a, const std::vector<double>& x, bool upper)
{
    const std::size_t n = x.size();
    std::vector<double> y(n, 0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = upper ? i : 0; j < n; ++j) y[i] += a[i * n + j] * x[j];
    return y;
}

template <class T>
class tile_qr final : public workload {
public:
    tile_qr(engines::device_memory& device, const kernel_image& image, const tiling& t, u64 seed)
        : t_(t), device_(&device), program_(image), matrix_(device, program_, t), initial_(make_matrix<T>(t.side(), seed)),
          t_values_(u64{t_index(t.tiles, 0)} * t.tile * qr::panel), t_data_(static_cast<T*>(device.take(t_values_ * sizeof(T))))
    {
        add_tasks();
        for (u32 number = 0; number < probes; ++number) {
            probes_.push_back(probe(t.side(), seed, number));
            images_.push_back(multiply(initial_, probes_.back(), false));
        }
        if (t.side() > qr_reference_side_max) return;
        reference_.assign(initial_.begin(), initial_.end());
        factor_qr(reference_, t.side());
    }

    std::string name() const override { return "qr"; }
    const engines::program& program() const override { return program_; }
    void reset() override
    {
        matrix_.write(initial_);
        device_->fill(t_data_, 0, t_values_ * sizeof(T));
    }
    std::string check() const override
    {
        return reference_.empty() ? "residual and orthogonality alone: the matrix is too large for a host factorization"
                                  : "a host factorization, residual and orthogonality";
    }

    verdict verify() override
    {
        const std::vector<T> result = matrix_.read();
        std::vector<T> ts(t_values_);
        device_->read(ts.data(), t_data_, t_values_ * sizeof(T));
        const stored_q<T> q(t_, result, ts);
        std::vector<error_measure> errors;
        if (!reference_.empty()) errors.push_back({"R against the host's", in_units<T>(largest_difference(result), t_.side())});
        for (u32 number = 0; number < probes; ++number) {
            std::vector<double> y = multiply(result, probes_[number], true);
            q.multiply(y);
            errors.push_back({"residual of probe " + std::to_string(number),
                              in_units<T>(distance(y, images_[number]) / norm(images_[number]), t_.side())});
            y = probes_[number];
            q.multiply(y);
            q.multiply_transposed(y);
            errors.push_back({"Q^T Q of probe " + std::to_string(number),
                              in_units<T>(distance(y, probes_[number]) / norm(probes_[number]), t_.side())});
        }
        return judge(errors);
    }

private:
    static constexpr u32 probes = 3;

    void add_tasks()
    {
        const u64 t_size = u64{t_.tile} * qr::panel;
        std::vector<data_handle> t_handles;
        if (t_.handles)
            for (u32 place = 0; place < t_index(t_.tiles, 0); ++place)
                t_handles.push_back(program_.register_range(t_data_ + place * t_size, t_size * sizeof(T)));
        const auto factor_in = [&](u32 i, u32 k) {
            return t_.handles ? in<T>(t_handles[t_index(i, k)]) : in<T>(t_data_ + t_index(i, k) * t_size, t_size);
        };
        const auto factor_out = [&](u32 i, u32 k) {
            return t_.handles ? out<T>(t_handles[t_index(i, k)]) : out<T>(t_data_ + t_index(i, k) * t_size, t_size);
        };
        const auto tile_in = [&](u32 i, u32 j) { return matrix_.template tile<in2d<T>>(i, j); };
        const auto tile_inout = [&](u32 i, u32 j) { return matrix_.template tile<inout2d<T>>(i, j); };
        const auto add = [&](u32 type, const auto& task, u32 blocks) {
            program_.add(type, &task, blocks, {}, {}, ordering::by_access, std::decay_t<decltype(task)>::name);
        };
        const u32 parts = qr::parts_of(t_.tile);
        for (u32 k = 0; k < t_.tiles; ++k) {
            add(geqrt_type, geqrt_task<T>{tile_inout(k, k), factor_out(k, k)}, 1);
            // unmqr reads the reflectors in the lower part of tile (k, k), tsqrt overwrites its upper part; accesses are whole
            // tiles, so the first tsqrt waits for all of them.
            for (u32 j = k + 1; j < t_.tiles; ++j)
                add(unmqr_type, unmqr_task<T>{tile_in(k, k), factor_in(k, k), tile_inout(k, j)}, parts);
            for (u32 i = k + 1; i < t_.tiles; ++i) {
                add(tsqrt_type, tsqrt_task<T>{tile_inout(k, k), tile_inout(i, k), factor_out(i, k)}, 1);
                for (u32 j = k + 1; j < t_.tiles; ++j)
                    add(tsmqr_type, tsmqr_task<T>{tile_in(i, k), factor_in(i, k), tile_inout(k, j), tile_inout(i, j)}, parts);
            }
        }
    }

    /// Of R and the reference, each with a diagonal made positive, relative to the largest element; NaN where R has one.
    double largest_difference(const std::vector<T>& r) const
    {
        const std::size_t n = t_.side();
        double difference = 0, largest = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double sign = (r[i * n + i] < 0) == (reference_[i * n + i] < 0) ? 1 : -1;
            for (std::size_t j = i; j < n; ++j) {
                const double d = std::abs(sign * r[i * n + j] - reference_[i * n + j]);
                if (std::isnan(d)) return d;
                difference = std::max(difference, d);
                largest = std::max(largest, std::abs(reference_[i * n + j]));
            }
        }
        return difference / largest;
    }

    tiling t_;
    engines::device_memory* device_;
    engines::program program_;
    tiled_matrix<T> matrix_;
    std::vector<T> initial_;
    u64 t_values_;
    T* t_data_;
    std::vector<double> reference_;                    ///< empty: too large
    std::vector<std::vector<double>> probes_, images_; ///< x and A x
};

std::unique_ptr<workload> make(engines::device_memory& device, const parameters& values, u64 seed)
{
    const tile_parameters p = read_tile_parameters("qr", defaults(), values);
    if (p.fp64) return std::make_unique<tile_qr<double>>(device, qr_fp64_image(), p.shape, seed);
    return std::make_unique<tile_qr<float>>(device, qr_fp32_image(), p.shape, seed);
}

} // namespace

workload_type qr_type()
{
    return {"qr", "tile QR, flat tree, fp32 or fp64; checked by R, residual and orthogonality", defaults(), &make};
}

} // namespace slipstream::workloads
