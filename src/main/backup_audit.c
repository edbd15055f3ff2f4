/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order makes the copy whole. The head is read first, so that the lines it knows of are in the
 * files that are copied after it. The files are listed once and copied from the oldest on: what is
 * begun after that is of a later moment, and the newest of the list is the only one that may have
 * been read while a line was written to it. All others never change, and so are linked and not
 * copied; rotation may remove them meanwhile, and then the list is made anew.
 */

#include "main/backup_audit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/files.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "main/tree.h"

enum { TRIES = 5, TAIL_PIECE = 4096 };

/* Half a line at the end of the copy, which the log has whole by now. */
static int cut_half_line(int dir_fd, const char *name, struct error *err)
{
    char piece[TAIL_PIECE];
    struct stat st;
    _cleanup_fd_ int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, "opening the copy of %s", name);
    off_t end = st.st_size;
    while (end > 0) {
        off_t from = end > TAIL_PIECE ? end - TAIL_PIECE : 0;
        ssize_t n = pread(fd, piece, (size_t)(end - from), from);
        if (n != end - from)
            return error_sys(err, "reading the copy of %s", name);
        const char *newline = memrchr(piece, '\n', (size_t)n);
        end = newline == NULL ? from : from + (newline - piece) + 1;
        if (newline != NULL)
            break;
    }
    if (end < st.st_size && ftruncate(fd, end) < 0)
        return error_sys(err, "cutting the copy of %s", name);
    return 0;
}

/* The folder is cellad's: what is linked has to be a file, whoever put it there. */
static bool link_file(int from_fd, int to_fd, const char *name)
{
    struct stat st;
    if (linkat(from_fd, name, to_fd, name, 0) < 0)
        return false;
    if (fstatat(to_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        return true;
    unlinkat(to_fd, name, 0);
    return false;
}

static int copy_file(int from_fd, int to_fd, uint64_t first, bool newest, struct error *err)
{
    char name[AUDIT_FILE_NAME_SIZE];
    audit_file_name(first, name);
    if (!newest && link_file(from_fd, to_fd, name))
        return 0;
    if (tree_copy_file(from_fd, name, to_fd, name, err) < 0)
        return -1;
    return newest ? cut_half_line(to_fd, name, err) : 0;
}

static int copy_files(int from_fd, int to_fd, struct error *err)
{
    struct audit_files files;
    if (audit_files_list(from_fd, &files, err) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; i < files.count && result == 0; i++)
        result = copy_file(from_fd, to_fd, files.items[i].first, i + 1 == files.count, err);
    audit_files_release(&files);
    return result;
}

static int copy_log(int data_fd, int stage_fd, struct error *err)
{
    _cleanup_fd_ int from =
        openat(data_fd, LAYOUT_AUDIT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return errno == ENOENT ? 0 : error_sys(err, "opening %s", LAYOUT_AUDIT);
    if (mkdirat(stage_fd, LAYOUT_AUDIT, 0700) < 0)
        return error_sys(err, "copying %s", LAYOUT_AUDIT);
    _cleanup_fd_ int to =
        openat(stage_fd, LAYOUT_AUDIT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return to < 0 ? error_sys(err, "copying %s", LAYOUT_AUDIT) : copy_files(from, to, err);
}

/* One that is not there, or of a server that never wrote a line, is none. */
static int copy_head(int data_fd, int stage_fd, struct error *err)
{
    unlinkat(stage_fd, LAYOUT_AUDIT_HEAD, 0);
    if (faccessat(data_fd, LAYOUT_AUDIT_HEAD, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0;
    return tree_copy_file(data_fd, LAYOUT_AUDIT_HEAD, stage_fd, LAYOUT_AUDIT_HEAD, err);
}

int backup_audit(int data_fd, int stage_fd, struct error *err)
{
    for (int i = 1;; i++) {
        struct error ignored;
        if (copy_head(data_fd, stage_fd, err) == 0 && copy_log(data_fd, stage_fd, err) == 0)
            return 0;
        if (err->code != ERROR_FILE_NOT_FOUND || i == TRIES ||
            tree_remove(stage_fd, LAYOUT_AUDIT, &ignored) < 0)
            return -1;
    }
}
