#include "data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "message.h"

/* An image count above this is taken for a damaged header, not for a reason to ask for memory. */
enum { MAX_IMAGES = 1000000 };

enum { MAGIC_LABELS = 0x801, MAGIC_IMAGES = 0x803 };

static const float pixel_mean = 0.2860f, pixel_deviation = 0.3530f;

struct idx_file {
    char path[4096];
    gzFile stream;
};

static bool idx_open(struct idx_file *file, const char *directory, const char *name)
{
    const int length = snprintf(file->path, sizeof file->path, "%s/%s", directory, name);
    if (length < 0 || (size_t)length >= sizeof file->path)
        return complain("--data-dir: the path has %d bytes; at most %zu are possible", length,
                        sizeof file->path - 1);
    errno = 0;
    file->stream = gzopen(file->path, "rb");
    if (!file->stream)
        return complain("cannot open %s: %s (Debian package dataset-fashion-mnist; --data-dir "
                        "names another place)",
                        file->path, errno ? strerror(errno) : "out of memory");
    return true;
}

/* Exactly `bytes`, or a complaint that tells a short file from a damaged one. */
static bool idx_read(struct idx_file *file, void *to, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        const size_t rest = bytes - done;
        const unsigned ask = rest > (1u << 30) ? 1u << 30 : (unsigned)rest;
        const int got = gzread(file->stream, (uint8_t *)to + done, ask);
        if (got <= 0) break;
        done += (size_t)got;
    }
    if (done == bytes) return true;
    int code;
    const char *text = gzerror(file->stream, &code);
    if (code == Z_ERRNO) text = strerror(errno);
    if (code == Z_OK || code == Z_STREAM_END) text = "the file ends there";
    return complain("%s: truncated or damaged after %zu of %zu bytes: %s", file->path, done, bytes,
                    text);
}

static uint32_t big_endian(const uint8_t b[4])
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The header, checked: magic number, count and, for images, 28 x 28. */
static bool idx_header(struct idx_file *file, uint32_t magic, int64_t *n)
{
    uint8_t bytes[16];
    if (!idx_read(file, bytes, magic == MAGIC_IMAGES ? 16 : 8)) return false;
    if (big_endian(bytes) != magic)
        return complain("%s: magic number is 0x%08x; an IDX file of %s begins with 0x%08x",
                        file->path, (unsigned)big_endian(bytes),
                        magic == MAGIC_IMAGES ? "images" : "labels", (unsigned)magic);
    const uint32_t count = big_endian(bytes + 4);
    if (count < 1 || count > MAX_IMAGES)
        return complain("%s: the header says %u entries; must be 1 to %d", file->path,
                        (unsigned)count, MAX_IMAGES);
    *n = count;
    if (magic == MAGIC_LABELS) return true;
    const uint32_t rows = big_endian(bytes + 8), columns = big_endian(bytes + 12);
    if (rows != IMAGE_SIDE || columns != IMAGE_SIDE)
        return complain("%s: images are %u x %u; must be 28 x 28", file->path, (unsigned)rows,
                        (unsigned)columns);
    return true;
}

/* Reading past the last byte also makes zlib check the CRC of the whole file. */
static bool idx_at_end(struct idx_file *file, int64_t n)
{
    uint8_t more;
    const int got = gzread(file->stream, &more, 1);
    if (got > 0)
        return complain("%s: goes on after the %lld entries of its header", file->path,
                        (long long)n);
    int code;
    const char *text = gzerror(file->stream, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
        return complain("%s: damaged at its end: %s", file->path, text);
    return true;
}

/* n entries of `entry_bytes` each, in memory that the caller frees. */
static uint8_t *idx_load(const char *directory, const char *name, uint32_t magic,
                         size_t entry_bytes, int64_t *n)
{
    struct idx_file file;
    if (!idx_open(&file, directory, name)) return 0;
    uint8_t *memory = 0;
    bool good = idx_header(&file, magic, n);
    if (good) {
        const size_t bytes = (size_t)*n * entry_bytes;
        memory = malloc(bytes);
        good = memory ? idx_read(&file, memory, bytes) && idx_at_end(&file, *n)
                      : complain("%s: no memory for %zu bytes", file.path, bytes);
    }
    gzclose(file.stream);
    if (good) return memory;
    free(memory);
    return 0;
}

static bool labels_in_range(const struct dataset *set, const char *directory, const char *name)
{
    for (int64_t i = 0; i < set->n; i++) {
        if (set->labels[i] >= CLASSES)
            return complain("%s/%s: label %d at index %lld; must be 0 to %d", directory, name,
                            set->labels[i], (long long)i, CLASSES - 1);
    }
    return true;
}

/* Images and labels of "train" or "t10k"; memory[0] and [1] are owned by the caller. */
static bool load_set(struct dataset *set, uint8_t *memory[2], const char *directory,
                     const char *which)
{
    char images[64], labels[64];
    snprintf(images, sizeof images, "%s-images-idx3-ubyte.gz", which);
    snprintf(labels, sizeof labels, "%s-labels-idx1-ubyte.gz", which);
    int64_t n_labels;
    memory[0] = idx_load(directory, images, MAGIC_IMAGES, IMAGE_PIXELS, &set->n);
    if (!memory[0]) return false;
    memory[1] = idx_load(directory, labels, MAGIC_LABELS, 1, &n_labels);
    if (!memory[1]) return false;
    if (set->n != n_labels)
        return complain("%s: %lld images in %s but %lld labels in %s", directory, (long long)set->n,
                        images, (long long)n_labels, labels);
    set->pixels = memory[0];
    set->labels = memory[1];
    return labels_in_range(set, directory, labels);
}

/* The last training images become the held-out set. */
static bool split_validation(struct fashion *data)
{
    struct dataset *train = &data->train;
    if (train->n <= VALIDATION_IMAGES)
        return complain("--validate: holds out %d images, but there are only %lld",
                        VALIDATION_IMAGES, (long long)train->n);
    train->n -= VALIDATION_IMAGES;
    data->held_out.n = VALIDATION_IMAGES;
    data->held_out.pixels = train->pixels + train->n * IMAGE_PIXELS;
    data->held_out.labels = train->labels + train->n;
    return true;
}

bool fashion_load(struct fashion *data, const char *directory, bool validate)
{
    memset(data, 0, sizeof *data);
    const bool good = load_set(&data->train, data->memory, directory, "train") &&
                      (validate ? split_validation(data)
                                : load_set(&data->held_out, data->memory + 2, directory, "t10k"));
    if (!good) fashion_free(data);
    return good;
}

void fashion_free(struct fashion *data)
{
    for (int i = 0; i < 4; i++) free(data->memory[i]);
    memset(data, 0, sizeof *data);
}

void dataset_gather(const struct dataset *set, const uint32_t *order, int64_t first, int rows,
                    float *input, uint8_t *label)
{
    const float scale = 1.0f / (255.0f * pixel_deviation);
    const float shift = -pixel_mean / pixel_deviation;
    for (int row = 0; row < rows; row++) {
        const int64_t image = order ? (int64_t)order[first + row] : first + row;
        const uint8_t *pixel = set->pixels + image * IMAGE_PIXELS;
        float *to = input + (int64_t)row * IMAGE_PIXELS;
        for (int i = 0; i < IMAGE_PIXELS; i++) to[i] = (float)pixel[i] * scale + shift;
        label[row] = set->labels[image];
    }
}
