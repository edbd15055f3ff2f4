/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella backup`: what a server needs to go on elsewhere, as one tar file, while it goes on here.
 *
 * What changes under us is copied first, below the data folder: the database in one transaction,
 * then the keys, the history of each sandbox and the audit log. The copy is listed with sums, then
 * packed together with the images, which never change. Nothing is asked of the server, so a backup
 * works as well while none runs.
 *
 * Not in it: what is made anew (the instance's id, so that a restored server can run beside the
 * old one), sandboxes' writable layers, measurements and networks' logs.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "cli/cli.h"
#include "main/archive.h"
#include "main/backup_audit.h"
#include "main/manifest.h"
#include "main/tree.h"
#include "store/store.h"

#define STAGE_PREFIX ".backup-"
#define HOST_IMAGE   LAYOUT_IMAGES "/host" /* made anew at every start */

enum { COPY_TRIES = 5 };

struct backup {
    const char *data;
    int data_fd;
    char stage[PATH_MAX]; /* "" until it is made */
    int stage_fd;         /* locked for as long as we live */
    uint64_t files, bytes;
};

static void close_file(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

/* --- the folder for copies --- */

/* What backups that were killed have left. */
static int sweep(struct backup *b, struct error *err)
{
    _cleanup_fd_ int fd = openat(b->data_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL)
        return error_sys(err, "reading %s", b->data);
    steal_fd(&fd);
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, STAGE_PREFIX, strlen(STAGE_PREFIX)) != 0)
            continue;
        _cleanup_fd_ int old =
            openat(b->data_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) == 0 &&
            tree_remove(b->data_fd, entry->d_name, err) < 0)
            return -1;
    }
    return 0;
}

static int make_stage(struct backup *b, struct error *err)
{
    snprintf(b->stage, sizeof(b->stage), "%s/" STAGE_PREFIX "XXXXXX", b->data);
    if (mkdtemp(b->stage) == NULL) {
        b->stage[0] = '\0';
        return error_sys(err, "making a folder in %s", b->data);
    }
    b->stage_fd = open(b->stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b->stage_fd < 0 || flock(b->stage_fd, LOCK_EX) < 0)
        return error_sys(err, "opening %s", b->stage);
    return 0;
}

/* --- copies --- */

static int copy_database(struct backup *b, struct error *err)
{
    char from[PATH_MAX], to[PATH_MAX + 32];
    struct store *store;
    snprintf(from, sizeof(from), "%s/%s", b->data, LAYOUT_DB);
    snprintf(to, sizeof(to), "%s/%s", b->stage, LAYOUT_DB);
    if (mkdirat(b->stage_fd, LAYOUT_DB_DIR, 0700) < 0)
        return error_sys(err, "making %s/%s", b->stage, LAYOUT_DB_DIR);
    /* For its mode: SQLite would make it readable by others. */
    _cleanup_fd_ int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "making %s", to);
    if (store_open(NULL, from, true, &store, err) < 0)
        return error_prefix(err, "is %s a data folder?", b->data);
    int result = store_copy(store, to, err);
    store_close(store);
    return result;
}

static int copy_small(struct backup *b, struct error *err)
{
    static const char *const names[] = {LAYOUT_API_KEY, LAYOUT_SECRET_KEY};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (tree_copy_file(b->data_fd, names[i], b->stage_fd, names[i], err) < 0)
            return -1;
    return 0;
}

/* A folder that may be missing, into the one for copies. */
static int copy_folder(int from_fd, int to_fd, const char *name, struct error *err)
{
    _cleanup_fd_ int from = openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return errno == ENOENT ? 0 : error_sys(err, "opening %s", name);
    if (mkdirat(to_fd, name, 0700) < 0)
        return error_sys(err, "copying %s", name);
    _cleanup_fd_ int to = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return to < 0 ? error_sys(err, "copying %s", name) : tree_copy(from, to, err);
}

/* git may put packs together meanwhile, and remove what it has put together: then once more. */
static int copy_repository(int from_fd, int to_fd, const char *name, struct error *err)
{
    for (int i = 1; copy_folder(from_fd, to_fd, name, err) < 0; i++) {
        struct error ignored;
        if (err->code != ERROR_FILE_NOT_FOUND || i == COPY_TRIES ||
            tree_remove(to_fd, name, &ignored) < 0)
            return -1;
    }
    return 0;
}

static int copy_histories(struct backup *b, struct error *err)
{
    _cleanup_fd_ int from =
        openat(b->data_fd, LAYOUT_HISTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return errno == ENOENT ? 0 : error_sys(err, "opening %s", LAYOUT_HISTORY);
    if (mkdirat(b->stage_fd, LAYOUT_HISTORY, 0700) < 0)
        return error_sys(err, "copying %s", LAYOUT_HISTORY);
    _cleanup_fd_ int to =
        openat(b->stage_fd, LAYOUT_HISTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_fd_ int list = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = list < 0 ? NULL : fdopendir(list);
    if (to < 0 || dir == NULL)
        return error_sys(err, "copying %s", LAYOUT_HISTORY);
    steal_fd(&list);
    /* Before the folders: what leaves the journal is in one of them by then. */
    if (faccessat(from, LAYOUT_HISTORY_JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
        tree_copy_file(from, LAYOUT_HISTORY_JOURNAL, to, LAYOUT_HISTORY_JOURNAL, err) < 0)
        return -1;
    struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' /* of the folder's own keeping */ &&
            tree_is_folder(from, entry->d_name) &&
            copy_repository(from, to, entry->d_name, err) < 0)
            return error_prefix(err, "%s/%s", LAYOUT_HISTORY, entry->d_name);
    return errno != 0 ? error_sys(err, "reading %s", LAYOUT_HISTORY) : 0;
}

/* --- the list, and the file --- */

/* Images, each by itself: that of the host is a view of this machine, and not to be walked over. */
static int list_images(struct backup *b, FILE *out, struct error *err)
{
    _cleanup_fd_ int fd =
        openat(b->data_fd, LAYOUT_IMAGES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, "opening %s", LAYOUT_IMAGES);
    _cleanup_fd_ int list = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = list < 0 ? NULL : fdopendir(list);
    if (dir == NULL)
        return error_sys(err, "reading %s", LAYOUT_IMAGES);
    steal_fd(&list);
    struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        char prefix[PATH_MAX];
        snprintf(prefix, sizeof(prefix), "%s/%s", LAYOUT_IMAGES, entry->d_name);
        if (entry->d_name[0] == '.' || strcmp(prefix, HOST_IMAGE) == 0)
            continue;
        _cleanup_fd_ int image =
            openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (image < 0)
            return error_sys(err, "opening %s", prefix);
        if (manifest_add(out, image, prefix, &b->files, &b->bytes, err) < 0)
            return -1;
    }
    return errno != 0 ? error_sys(err, "reading %s", LAYOUT_IMAGES) : 0;
}

/* In memory until it is whole: it does not mention itself. */
static int write_list(struct backup *b, FILE *memory, struct error *err)
{
    if (manifest_begin(memory, err) < 0 ||
        manifest_add(memory, b->stage_fd, "", &b->files, &b->bytes, err) < 0)
        return -1;
    return list_images(b, memory, err);
}

static int list_all(struct backup *b, struct error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    if (memory == NULL)
        return error_sys(err, "listing the backup");
    int result = write_list(b, memory, err);
    if (fclose(memory) != 0 && result == 0)
        result = error_sys(err, "listing the backup");
    if (result < 0)
        return -1;
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/" MANIFEST_NAME, b->stage);
    _cleanup_(close_file) FILE *out = fopen(path, "wxe");
    if (out == NULL || fwrite(text, 1, len, out) != len || fflush(out) != 0)
        return error_sys(err, "writing %s", path);
    return 0;
}

static int pack(struct backup *b, int out, struct error *err)
{
    char images[PATH_MAX];
    snprintf(images, sizeof(images), "%s/%s", b->data, LAYOUT_IMAGES);
    const char *argv[32] = {"tar",         "--create",       "--file=-",    "--format=posix",
                            "--sparse",    "--acls",         "--xattrs",    "--xattrs-include=*",
                            "-C",          b->stage,         MANIFEST_NAME, LAYOUT_API_KEY,
                            LAYOUT_DB_DIR, LAYOUT_SECRET_KEY};
    int argc = 14;
    static const char *const folders[] = {LAYOUT_TLS, LAYOUT_HISTORY, LAYOUT_AUDIT};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (faccessat(b->stage_fd, folders[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            argv[argc++] = folders[i];
    if (access(images, F_OK) == 0) {
        argv[argc++] = "-C";
        argv[argc++] = b->data;
        argv[argc++] = "--numeric-owner";
        argv[argc++] = "--anchored"; /* an image may well have an images/host in it */
        argv[argc++] = "--exclude=" HOST_IMAGE;
        argv[argc++] = "--exclude=" LAYOUT_IMAGES "/.*"; /* as list_images() has it */
        argv[argc++] = LAYOUT_IMAGES;
    }
    return archive_run(argv, -1, out, "the backup could not be written", err);
}

/* --- under its name once it is whole, and never over another file --- */

static int write_out(struct backup *b, int fd, const char *file, struct error *err)
{
    if (pack(b, fd, err) < 0)
        return -1;
    return fsync(fd) < 0 ? error_sys(err, "writing %s", file) : 0;
}

/* Where there are no files without a name (NFS): another name, which a kill leaves behind. */
static int pack_by_rename(struct backup *b, const char *file, struct error *err)
{
    char part[PATH_MAX];
    if (snprintf(part, sizeof(part), "%s.part-%d", file, (int)getpid()) >= (int)sizeof(part))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: too long a path", file);
    _cleanup_fd_ int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "making %s", part);
    int result = write_out(b, fd, file, err);
    if (result == 0 && renameat2(AT_FDCWD, part, AT_FDCWD, file, RENAME_NOREPLACE) < 0)
        result = error_sys(err, "naming it %s", file);
    if (result < 0)
        unlink(part);
    return result;
}

/* Without a name it goes with whoever is killed. */
static int pack_to_file(struct backup *b, const char *file, struct error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", file);
    if (access(file, F_OK) == 0)
        return error_set(err, ERROR_ALREADY_EXISTS, "%s exists already", file);
    _cleanup_fd_ int fd = open(dirname(path), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        return pack_by_rename(b, file, err);
    if (fd < 0)
        return error_sys(err, "making %s", file);
    if (write_out(b, fd, file, err) < 0)
        return -1;
    return linkat(fd, "", AT_FDCWD, file, AT_EMPTY_PATH) < 0 ? error_sys(err, "naming it %s", file)
                                                             : 0;
}

static int make_backup(struct backup *b, const char *file, struct error *err)
{
    if (sweep(b, err) < 0 || make_stage(b, err) < 0 || copy_database(b, err) < 0 ||
        copy_small(b, err) < 0 || copy_folder(b->data_fd, b->stage_fd, LAYOUT_TLS, err) < 0 ||
        copy_histories(b, err) < 0 || backup_audit(b->data_fd, b->stage_fd, err) < 0 ||
        list_all(b, err) < 0)
        return -1;
    return strcmp(file, "-") == 0 ? pack(b, STDOUT_FILENO, err) : pack_to_file(b, file, err);
}

int server_backup(const char *data, const char *file, struct error *err)
{
    struct backup b = {.data = data, .data_fd = -1, .stage_fd = -1};
    struct error ignored;
    if (geteuid() != 0)
        return error_set(err, ERROR_PERMISSION_DENIED,
                         "a backup holds keys: only root can make one");
    if (strcmp(file, "-") == 0 && isatty(STDOUT_FILENO))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a backup is no text for a terminal");
    b.data_fd = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b.data_fd < 0)
        return error_sys(err, "opening %s", data);
    int result = make_backup(&b, file, err);
    if (b.stage[0] != '\0')
        tree_remove(b.data_fd, strrchr(b.stage, '/') + 1, &ignored);
    if (result == 0)
        fprintf(stderr, "backed up %s: %" PRIu64 " files, %" PRIu64 " bytes\n", data, b.files,
                b.bytes);
    if (b.stage_fd >= 0)
        close(b.stage_fd);
    close(b.data_fd);
    return result;
}
