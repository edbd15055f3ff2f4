/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replays saved inputs through a fuzz target: each argument is a file, or a directory of files.
 * So what the fuzzer once found stays found, with any compiler.
 */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "re");
    struct stat st;
    if (file == NULL || fstat(fileno(file), &st) != 0) {
        perror(path);
        return -1;
    }
    /* Exactly as large as the input, so that AddressSanitizer sees a read past its end. */
    uint8_t *data = malloc((size_t)st.st_size + (st.st_size == 0));
    size_t len = data == NULL ? 0 : fread(data, 1, (size_t)st.st_size, file);
    fclose(file);
    if (data != NULL)
        LLVMFuzzerTestOneInput(data, len);
    free(data);
    return data == NULL ? -1 : 1;
}

static int replay(const char *path)
{
    _cleanup_dir_ DIR *dir = opendir(path);
    if (dir == NULL)
        return replay_file(path);
    int count = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char name[4096];
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        int n = replay_file(name);
        if (n < 0)
            return -1;
        count += n;
    }
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        int n = replay(argv[i]);
        if (n < 0)
            return 1;
        count += n;
    }
    printf("%d inputs\n", count);
    return count == 0; /* an empty corpus tests nothing */
}
