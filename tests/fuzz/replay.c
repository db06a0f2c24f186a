/* replay.c - gives every file of the folders named to a fuzz target, where libFuzzer is not there to
 * do it: each normal test run replays the corpus. */
#include <dirent.h>
#include "input.h"

/* The file in memory of exactly its size, so that a sanitizer sees a read past the end. */
static void replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    must(f && fseek(f, 0, SEEK_END) == 0);
    const long size = ftell(f);
    must(size >= 0 && fseek(f, 0, SEEK_SET) == 0);
    uint8_t *data = malloc(size ? (size_t)size : 1);
    must(data && fread(data, 1, (size_t)size, f) == (size_t)size);
    fclose(f);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

static size_t replay_folder(const char *folder)
{
    char path[4096];
    size_t n = 0;
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        must(snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path);
        fprintf(stderr, "%s\n", entry->d_name); /* the last one is the one that failed */
        replay(path);
        n++;
    }
    closedir(dir);
    return n;
}

int main(int argc, char *argv[])
{
    int empty = argc < 2;
    for (int i = 1; i < argc; i++) {
        const size_t n = replay_folder(argv[i]);
        printf("%zu inputs of %s\n", n, argv[i]);
        empty |= !n;
    }
    return empty;
}
