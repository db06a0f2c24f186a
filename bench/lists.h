// lists.h - the lists of tensors that steps are timed on.
#ifndef LARGO_BENCH_LISTS_H
#define LARGO_BENCH_LISTS_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace largo_bench
{

using Shape = std::pair<std::int64_t, std::int64_t>; // rows, columns; a vector is n x 1

inline const std::vector<std::string> list_names = {"gpt2", "square", "small", "tiny"};

// GPT-2 124M: embeddings, 12 blocks, the last normalisation. 148 tensors, 124.4 M elements.
inline std::vector<Shape> gpt2_shapes()
{
    const Shape norm = {768, 1};
    std::vector<Shape> list = {{50257, 768}, {1024, 768}};
    for (int layer = 0; layer < 12; layer++)
        for (const Shape &s :
             {norm, norm, Shape{768, 2304}, Shape{2304, 1}, Shape{768, 768}, Shape{768, 1}, norm,
              norm, Shape{768, 3072}, Shape{3072, 1}, Shape{3072, 768}, Shape{768, 1}})
            list.push_back(s);
    list.push_back(norm);
    list.push_back(norm);
    return list;
}

inline std::vector<Shape> list_shapes(const std::string &name)
{
    if (name == "gpt2") return gpt2_shapes();
    if (name == "square") return {{4096, 4096}};
    if (name == "small") return std::vector<Shape>(1000, Shape{1024, 1});
    return std::vector<Shape>(100000, Shape{16, 1}); // tiny
}

} // namespace largo_bench

#endif
