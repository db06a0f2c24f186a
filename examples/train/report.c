#include "report.h"

#include <errno.h>
#include <string.h>

#include "message.h"

/* The data are IDX files, mostly in gzip; a log named like one by mistake must not replace it. */
static bool is_data(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) return false;
    unsigned char begin[3] = {0};
    const size_t n = fread(begin, 1, sizeof begin, file);
    fclose(file);
    const bool gzip = begin[0] == 0x1f && begin[1] == 0x8b;
    return n == sizeof begin && (gzip || (begin[0] == 0 && begin[1] == 0 && begin[2] == 8));
}

bool csv_open(struct csv *csv, const char *path, bool validate)
{
    csv->path = path;
    csv->file = 0;
    if (!path) return true;
    if (is_data(path)) return complain("--csv: %s holds data; it will not be replaced", path);
    csv->file = fopen(path, "w");
    if (!csv->file) return complain("--csv: cannot write %s: %s", path, strerror(errno));
    fprintf(csv->file,
            "optimizer,batch,epoch,step,lr,train_loss,%s_accuracy,samples_per_s,seed,skipped\n",
            validate ? "validation" : "test");
    if (fflush(csv->file) == 0) return true;
    complain("--csv: cannot write %s: %s", path, strerror(errno));
    fclose(csv->file);
    csv->file = 0;
    return false;
}

bool csv_epoch(struct csv *csv, const struct recipe *recipe, const struct epoch *epoch)
{
    if (!csv->file) return true;
    fprintf(csv->file, "%s,%lld,%lld,%lld,%.9g,%.6g,%.2f,%.0f,%llu,%lld\n", recipe->optimizer->name,
            (long long)recipe->batch, (long long)epoch->number, (long long)epoch->step, epoch->lr,
            epoch->loss, epoch->accuracy, epoch->samples_per_second,
            (unsigned long long)recipe->seed, (long long)epoch->skipped);
    if (fflush(csv->file) == 0) return true;
    return complain("--csv: cannot write %s: %s", csv->path, strerror(errno));
}

bool csv_close(struct csv *csv)
{
    if (!csv->file) return true;
    const bool good = fclose(csv->file) == 0;
    csv->file = 0;
    return good ? true : complain("--csv: cannot write %s: %s", csv->path, strerror(errno));
}
