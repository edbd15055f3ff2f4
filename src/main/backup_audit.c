/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order makes the copy whole. The head is read first, so that the lines it knows of are in the
 * files that are copied after it. The files are copied from the oldest on: what is begun after that
 * is of a later moment, and the newest of the list is the only one that may have been read while a
 * line was written to it. Rotation may begin a file and remove others meanwhile, and then the line
 * that says what was removed is in a file that is not in the list: so the folder is listed again at
 * the end, and when that is not what it was, all is done anew.
 *
 * Files are copied and not linked, although most of them never change: a link would be the same
 * file as one in a folder that the process which faces the network can write to. Where the file
 * system can share blocks, a copy costs no room.
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

/* Lines that outlived their files: such a file is written under another name, and never changed. */
static int copy_kept(int from_fd, int to_fd, struct error *err)
{
    struct audit_files kept;
    char name[AUDIT_FILE_NAME_SIZE];
    if (audit_kept_list(from_fd, &kept, err) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; i < kept.count && result == 0; i++) {
        audit_kept_name(kept.items[i].first, name);
        result = tree_copy_file(from_fd, name, to_fd, name, err);
    }
    audit_files_release(&kept);
    return result;
}

static int copy_file(int from_fd, int to_fd, uint64_t first, bool newest, struct error *err)
{
    char name[AUDIT_FILE_NAME_SIZE];
    audit_file_name(first, name);
    if (tree_copy_file(from_fd, name, to_fd, name, err) < 0)
        return -1;
    return newest ? cut_half_line(to_fd, name, err) : 0;
}

static int check_same(int from_fd, const struct audit_files *files, struct error *err)
{
    struct audit_files now;
    if (audit_files_list(from_fd, &now, err) < 0)
        return -1;
    bool same = now.count == files->count;
    for (size_t i = 0; same && i < now.count; i++)
        same = now.items[i].first == files->items[i].first;
    audit_files_release(&now);
    return same ? 0
                : error_set(err, ERROR_FILE_NOT_FOUND,
                            "the audit log's files change too fast to be copied");
}

static int copy_files(int from_fd, int to_fd, struct error *err)
{
    struct audit_files files;
    if (audit_files_list(from_fd, &files, err) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; i < files.count && result == 0; i++)
        result = copy_file(from_fd, to_fd, files.items[i].first, i + 1 == files.count, err);
    if (result == 0)
        result = copy_kept(from_fd, to_fd, err);
    if (result == 0)
        result = check_same(from_fd, &files, err);
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
