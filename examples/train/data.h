/* data.h - Fashion-MNIST from its IDX files. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <stdbool.h>
#include <stdint.h>

enum { IMAGE_SIDE = 28, IMAGE_PIXELS = IMAGE_SIDE * IMAGE_SIDE, CLASSES = 10 };
enum { VALIDATION_IMAGES = 5000 };

/* n images and their labels. A view: the memory belongs to struct fashion. */
struct dataset {
    int64_t n;
    const uint8_t *pixels; /* n x IMAGE_PIXELS */
    const uint8_t *labels; /* n, each below CLASSES */
};

struct fashion {
    struct dataset train, held_out; /* learn from the first, report on the second */
    uint8_t *memory[4];
};

/* Read the four files of the directory. With `validate` the last 5,000 training images are held
 * out and the test images are not read. False after a complaint; `data` is then empty. */
bool fashion_load(struct fashion *data, const char *directory, bool validate);
void fashion_free(struct fashion *data);

/* input[i] = image order[i], its pixels scaled to mean 0 and deviation 1 over the training set;
 * label[i] likewise. order NULL: images first .. first + rows. */
void dataset_gather(const struct dataset *set, const uint32_t *order, int64_t first, int rows,
                    float *input, uint8_t *label);

#endif
