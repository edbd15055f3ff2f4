/* SPDX-License-Identifier: Apache-2.0 */

/* Names, and the head. */

#include "audit/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CHAIN_PREFIX "audit-"
#define KEPT_PREFIX  "kept-"
#define SUFFIX       ".jsonl"

enum { DIGITS = 20 };

void audit_file_name(uint64_t first, char out[AUDIT_FILE_NAME_SIZE])
{
    snprintf(out, AUDIT_FILE_NAME_SIZE, CHAIN_PREFIX "%020" PRIu64 SUFFIX, first);
}

void audit_kept_name(uint64_t first, char out[AUDIT_FILE_NAME_SIZE])
{
    snprintf(out, AUDIT_FILE_NAME_SIZE, KEPT_PREFIX "%020" PRIu64 SUFFIX, first);
}

static bool parse_name(const char *name, const char *prefix, uint64_t *ret_first)
{
    size_t len = strlen(prefix);
    if (strncmp(name, prefix, len) != 0 || strspn(name + len, "0123456789") != DIGITS ||
        strcmp(name + len + DIGITS, SUFFIX) != 0 || name[len] > '0')
        return false;
    *ret_first = strtoull(name + len, NULL, 10);
    return *ret_first > 0;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = ((const struct audit_file *)a)->first, y = ((const struct audit_file *)b)->first;
    return x < y ? -1 : x > y;
}

static int add(struct audit_files *files, int dir_fd, const char *name, uint64_t first,
               struct error *err)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if (files->count == AUDIT_FILES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "there are more than %d files of the audit log",
                         AUDIT_FILES_MAX);
    if ((files->count & (files->count - 1)) == 0) { /* a power of two: full */
        size_t cap = files->count == 0 ? 1 : 2 * files->count;
        struct audit_file *items = realloc(files->items, cap * sizeof(*items));
        if (items == NULL)
            return error_sys(err, "listing the audit log");
        files->items = items;
    }
    files->items[files->count++] =
        (struct audit_file){.first = first,
                            .bytes = (uint64_t)st.st_size,
                            .changed_ms = (int64_t)st.st_mtim.tv_sec * 1000};
    return 0;
}

static int list(int dir_fd, const char *prefix, struct audit_files *ret_files, struct error *err)
{
    struct audit_files files = {0};
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int rc = error_sys(err, "listing the audit log");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        uint64_t first;
        if (parse_name(entry->d_name, prefix, &first) &&
            add(&files, dir_fd, entry->d_name, first, err) < 0) {
            audit_files_release(&files);
            return -1;
        }
    }
    if (files.count > 0)
        qsort(files.items, files.count, sizeof(*files.items), by_number);
    *ret_files = files;
    return 0;
}

int audit_files_list(int dir_fd, struct audit_files *ret_files, struct error *err)
{
    return list(dir_fd, CHAIN_PREFIX, ret_files, err);
}

int audit_kept_list(int dir_fd, struct audit_files *ret_files, struct error *err)
{
    return list(dir_fd, KEPT_PREFIX, ret_files, err);
}

void audit_files_release(struct audit_files *files)
{
    free(files->items);
    *files = (struct audit_files){0};
}

static int open_named(int dir_fd, const char *name, int *ret_fd, struct error *err)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", name);
    *ret_fd = fd;
    return 0;
}

int audit_file_open(int dir_fd, uint64_t first, int *ret_fd, struct error *err)
{
    char name[AUDIT_FILE_NAME_SIZE];
    audit_file_name(first, name);
    return open_named(dir_fd, name, ret_fd, err);
}

int audit_kept_open(int dir_fd, uint64_t first, int *ret_fd, struct error *err)
{
    char name[AUDIT_FILE_NAME_SIZE];
    audit_kept_name(first, name);
    return open_named(dir_fd, name, ret_fd, err);
}

/* --- the head --- */

#define HEAD_FORM "audit %020" PRIu64 " %s\n"

int audit_head_read(int fd, struct audit_head *ret_head, struct error *err)
{
    char text[AUDIT_HEAD_SIZE + 1] = {0};
    struct audit_head head = {0};
    ssize_t n = pread(fd, text, AUDIT_HEAD_SIZE, 0);
    if (n < 0)
        return error_sys(err, "reading the head of the audit log");
    if (n == 0)
        return error_set(err, ERROR_FILE_NOT_FOUND, "the head of the audit log is empty");
    const char *number = text + 6;
    if (n != AUDIT_HEAD_SIZE || strncmp(text, "audit ", 6) != 0 ||
        strspn(number, "0123456789") != DIGITS || number[DIGITS] != ' ' ||
        !audit_hash_parse(number + DIGITS + 1, head.hash))
        return error_set(err, ERROR_CONFLICT,
                         "the head of the audit log is not one: it was changed");
    head.seq = strtoull(number, NULL, 10);
    *ret_head = head;
    return 0;
}

int audit_head_write(int fd, const struct audit_head *head, struct error *err)
{
    char text[AUDIT_HEAD_SIZE + 1], hash[AUDIT_HASH_TEXT + 1];
    audit_hash_text(head->hash, hash);
    memset(text, ' ', sizeof(text));
    int n = snprintf(text, sizeof(text), HEAD_FORM, head->seq, hash);
    text[n] = ' ';
    text[AUDIT_HEAD_SIZE - 1] = '\n';
    if (pwrite(fd, text, AUDIT_HEAD_SIZE, 0) != AUDIT_HEAD_SIZE)
        return error_sys(err, "writing the head of the audit log");
    return 0;
}
