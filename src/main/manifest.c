/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of a backup's files with their sums. It tells a copy that was cut off or has gone bad
 * from a good one; it is no signature: whoever can change a backup can change its manifest.
 */

#include "main/manifest.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "auth/digest.h"
#include "base/cleanup.h"
#include "base/timetext.h"
#include "main/tree.h"
#include "store/store.h"

#define FORMAT "cella-backup 1"

enum { LINE_SIZE = 3 * PATH_MAX + 256 };

static void close_file(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

int manifest_begin(FILE *out, struct error *err)
{
    char time_text[TIME_TEXT_SIZE];
    time_rfc3339((int64_t)time(NULL) * 1000, time_text);
    if (fprintf(out, FORMAT "\nversion " CELLA_VERSION "\nschema %d\ncreated %s\n",
                store_schema_version(), time_text) < 0)
        return error_sys(err, "writing %s", MANIFEST_NAME);
    return 0;
}

static void escape(const char *path, char *out, size_t size)
{
    size_t at = 0;
    for (const unsigned char *c = (const unsigned char *)path; *c != '\0' && at + 4 < size; c++) {
        bool plain = *c > ' ' && *c < 127 && *c != '%';
        at += (size_t)snprintf(out + at, size - at, plain ? "%c" : "%%%02x", *c);
    }
    out[at] = '\0';
}

/* --- making --- */

struct making {
    FILE *out;
    uint64_t files, bytes;
};

static int add_file(void *ctx, enum tree_moment moment, int dir_fd, const char *name,
                    const char *path, const struct stat *st, struct error *err)
{
    struct making *making = ctx;
    char sum[DIGEST_TEXT_SIZE], text[3 * PATH_MAX];
    if (moment != TREE_FILE || !S_ISREG(st->st_mode))
        return 0;
    _cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || digest_file(fd, sum, err) < 0)
        return fd < 0 ? error_sys(err, "opening %s", path) : error_prefix(err, "%s", path);
    escape(path, text, sizeof(text));
    making->files++;
    making->bytes += (uint64_t)st->st_size;
    if (fprintf(making->out, "file %s %" PRIu64 " %s\n", sum, (uint64_t)st->st_size, text) < 0)
        return error_sys(err, "writing %s", MANIFEST_NAME);
    return 0;
}

int manifest_add(FILE *out, int dir_fd, const char *prefix, uint64_t *files, uint64_t *bytes,
                 struct error *err)
{
    struct making making = {.out = out};
    if (tree_walk(dir_fd, prefix, add_file, &making, err) < 0)
        return -1;
    *files += making.files;
    *bytes += making.bytes;
    return 0;
}

/* --- verifying --- */

static int bad(struct error *err, const char *what)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "this is no whole backup: %s", what);
}

/* The next line without its end; false at the end of the file or of what a line may have. */
static bool next_line(FILE *in, char line[LINE_SIZE])
{
    if (fgets(line, LINE_SIZE, in) == NULL)
        return false;
    size_t len = strlen(line);
    if (len == 0 || line[len - 1] != '\n')
        return false;
    line[len - 1] = '\0';
    return true;
}

static int verify_head(FILE *in, char line[LINE_SIZE], struct error *err)
{
    if (!next_line(in, line) || strncmp(line, "cella-backup ", 13) != 0)
        return bad(err, "its first file is no manifest of Cella's");
    if (strcmp(line, FORMAT) != 0)
        return error_set(err, ERROR_CONFLICT,
                         "the backup was made by a newer version of Cella (\"%.40s\")", line);
    if (!next_line(in, line) || strncmp(line, "version ", 8) != 0)
        return bad(err, "the manifest has no version");
    char version[64];
    snprintf(version, sizeof(version), "%s", line + 8);
    if (!next_line(in, line) || strncmp(line, "schema ", 7) != 0)
        return bad(err, "the manifest has no schema");
    if (strtol(line + 7, NULL, 10) > store_schema_version())
        return error_set(
            err, ERROR_CONFLICT,
            "the backup was made by Cella %s, whose database has schema %.10s; this is "
            "Cella " CELLA_VERSION ", which knows %d at most",
            version, line + 7, store_schema_version());
    if (!next_line(in, line) || strncmp(line, "created ", 8) != 0)
        return bad(err, "the manifest has no time");
    return 0;
}

static bool unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        char hex[3] = {from[1], from[1] == '\0' ? '\0' : from[2], '\0'};
        if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1]))
            return false;
        *to++ = (char)strtol(hex, NULL, 16);
        from += 2;
    }
    *to = '\0';
    return true;
}

/* "SHA-256 SIZE PATH". The folder is ours alone, and has been filled from the same backup. */
static int verify_file(int dir_fd, char *row, struct error *err)
{
    char sum[DIGEST_TEXT_SIZE], *end;
    struct stat st;
    if (strlen(row) < DIGEST_TEXT_SIZE || row[DIGEST_TEXT_SIZE - 1] != ' ')
        return bad(err, "a line of the manifest is malformed");
    row[DIGEST_TEXT_SIZE - 1] = '\0';
    unsigned long long size = strtoull(row + DIGEST_TEXT_SIZE, &end, 10);
    if (*end != ' ' || !unescape(end + 1))
        return bad(err, "a line of the manifest is malformed");
    const char *path = end + 1;
    _cleanup_fd_ int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ELOOP))
        return error_set(err, ERROR_INVALID_ARGUMENT, "this is no whole backup: %s is missing",
                         path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, "opening %s", path);
    if (!S_ISREG(st.st_mode) || (unsigned long long)st.st_size != size)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "this is no whole backup: %s has another size than the manifest says",
                         path);
    if (digest_file(fd, sum, err) < 0)
        return error_prefix(err, "%s", path);
    if (strcmp(sum, row) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "this is no whole backup: %s is not what the manifest says (SHA-256)",
                         path);
    return 0;
}

static int count_file(void *ctx, enum tree_moment moment, int dir_fd, const char *name,
                      const char *path, const struct stat *st, struct error *err)
{
    if (moment == TREE_FILE && S_ISREG(st->st_mode))
        ++*(uint64_t *)ctx;
    return 0;
}

int manifest_verify(int dir_fd, uint64_t *ret_files, struct error *err)
{
    _cleanup_free_ char *line = malloc(LINE_SIZE);
    _cleanup_fd_ int fd = openat(dir_fd, MANIFEST_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return bad(err, "there is no " MANIFEST_NAME " in it");
    _cleanup_(close_file) FILE *in = fdopen(fd, "r");
    if (in == NULL || line == NULL)
        return error_sys(err, "reading %s", MANIFEST_NAME);
    steal_fd(&fd);
    if (verify_head(in, line, err) < 0)
        return -1;
    uint64_t files = 0, there = 0;
    for (; next_line(in, line); files++)
        if (strncmp(line, "file ", 5) != 0)
            return bad(err, "a line of the manifest is malformed");
        else if (verify_file(dir_fd, line + 5, err) < 0)
            return -1;
    /* Each of them is there; as many as are there have been looked at, but for the manifest. */
    if (tree_walk(dir_fd, "", count_file, &there, err) < 0)
        return -1;
    if (there != files + 1)
        return bad(err, "it has files that the manifest does not mention, or mentions twice");
    *ret_files = files;
    return 0;
}
