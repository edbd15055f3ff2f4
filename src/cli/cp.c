/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella cp`: files and directories into a sandbox or out of one, one request per file over one
 * connection, so that size does not matter.
 *
 * What comes out of a sandbox was named by code inside it: names are single parts of a path, and
 * are made below directories that were opened without following links, so nothing is written
 * outside of the target.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/file.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "http/client.h"

enum { PIECE = 256 * 1024, LOCAL_PATH_MAX = 64 * 1024 };

/* --- places --- */

struct place {
    char *name; /* of the sandbox; NULL: on this machine */
    const char *path;
};

static void place_release(struct place *place)
{
    free(place->name);
}

/* "GROUP/NAME" of "GROUP/NAME:/PATH": nothing but names, and a path from the root, so that no
 * "dir/a:b" of this machine is taken for one. */
static bool is_in_group(const char *word, const char *slash, const char *colon)
{
    char group[NAME_MAX_LEN + 1], name[NAME_MAX_LEN + 1];
    if (colon[1] != '/' || slash - word > NAME_MAX_LEN || colon - slash - 1 > NAME_MAX_LEN)
        return false;
    snprintf(group, sizeof(group), "%.*s", (int)(slash - word), word);
    snprintf(name, sizeof(name), "%.*s", (int)(colon - slash - 1), slash + 1);
    return name_check(group, NULL) == 0 && name_check(name, NULL) == 0;
}

/* NAME:PATH, unless a slash comes first that is not the one of GROUP/NAME. */
static struct place place_read(const char *word)
{
    const char *colon = strchr(word, ':'), *slash = strchr(word, '/');
    if (colon == NULL || colon == word ||
        (slash != NULL && slash < colon && !is_in_group(word, slash, colon)))
        return (struct place){NULL, word};
    return (struct place){strndup(word, (size_t)(colon - word)),
                          colon[1] == '\0' ? "/" : colon + 1};
}

static const char *base_name(const char *path, size_t *ret_len)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    *ret_len = end - start;
    return path + start;
}

static void add_base(struct buf *path, const char *source)
{
    size_t len;
    const char *base = base_name(source, &len);
    if (path->len > 0 && path->data[path->len - 1] != '/')
        buf_addc(path, '/');
    buf_add(path, base, len);
}

/* Whether the path is a directory of the sandbox; *ret_exists. */
static int is_remote_directory(struct invocation *inv, const char *name, const char *path,
                               bool *ret_directory, bool *ret_exists, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    struct error why = {0};
    file_target_at(inv->client, &target, "/filesystem-find", name, path);
    buf_adds(&target, "?maxResults=1");
    *ret_exists = true;
    *ret_directory = client_json(inv->client, "GET", &target, NULL, 0, &root, &why) == 0;
    if (*ret_directory || why.code == ERROR_NOT_A_DIRECTORY)
        return 0;
    *ret_exists = false;
    if (why.code == ERROR_FILE_NOT_FOUND)
        return 0;
    *err = why;
    return -1;
}

/* --- in --- */

static int put_file(struct invocation *inv, const char *name, const char *path, const char *source,
                    struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_fd_ int fd = -1;
    int64_t length = -1;
    struct stat st;
    yyjson_val *root;
    if (file_open_source(source, &fd, &length, err) < 0)
        return -1;
    file_target_at(inv->client, &target, "/filesystem", name, path);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        buf_addf(&target, "?permissions=%04o", (unsigned)(st.st_mode & 07777));
    if (client_put_bytes(inv->client, &target, length, err) < 0 ||
        file_send_source(inv, fd, length, err) < 0)
        return -1;
    return client_put_end(inv->client, &root, err);
}

static int put_directory(struct invocation *inv, const char *name, const char *path, mode_t mode,
                         struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_mut_val *body;
    yyjson_mut_doc *doc = client_body(inv->client, &body);
    yyjson_val *root;
    char permissions[8];
    snprintf(permissions, sizeof(permissions), "%04o", (unsigned)(mode & 07777));
    yyjson_mut_obj_add_bool(doc, body, "isDirectory", true);
    yyjson_mut_obj_add_strcpy(doc, body, "permissions", permissions);
    file_target_at(inv->client, &target, "/filesystem", name, path);
    return client_json(inv->client, "PUT", &target, doc, 0, &root, err);
}

static int put_tree(struct invocation *inv, const char *name, struct buf *path, struct buf *source,
                    struct error *err);

static int put_one(struct invocation *inv, const char *name, struct buf *path, struct buf *source,
                   struct error *err)
{
    struct stat st;
    if (buf_check(path, "a path", err) < 0 || buf_check(source, "a path", err) < 0)
        return -1;
    if (lstat(source->data, &st) < 0)
        return error_sys(err, "%.200s", source->data);
    if (S_ISDIR(st.st_mode))
        return put_tree(inv, name, path, source, err);
    bool is_link = S_ISLNK(st.st_mode);
    if (is_link && (stat(source->data, &st) < 0 || S_ISDIR(st.st_mode)))
        st.st_mode = S_IFIFO;
    if (!S_ISREG(st.st_mode)) {
        dprintf(STDERR_FILENO, "cella: left out, as it is no file: %s\n", source->data);
        return 0;
    }
    return put_file(inv, name, path->data, source->data, err);
}

static void shorten(struct buf *path, size_t len)
{
    path->len = len;
    path->data[len] = '\0';
}

static int put_tree(struct invocation *inv, const char *name, struct buf *path, struct buf *source,
                    struct error *err)
{
    struct stat st;
    _cleanup_dir_ DIR *dir = opendir(source->data);
    if (dir == NULL || fstat(dirfd(dir), &st) < 0)
        return error_sys(err, "%.200s", source->data);
    if (put_directory(inv, name, path->data, st.st_mode, err) < 0)
        return -1;
    const struct dirent *entry;
    size_t path_len = path->len, source_len = source->len;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        buf_addf(path, "/%s", entry->d_name);
        buf_addf(source, "/%s", entry->d_name);
        int rc = put_one(inv, name, path, source, err);
        shorten(path, path_len);
        shorten(source, source_len);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int copy_in(struct invocation *inv, const char *source, const struct place *to,
                   struct error *err)
{
    _cleanup_buf_ struct buf path = BUF_INIT(LOCAL_PATH_MAX);
    _cleanup_buf_ struct buf from = BUF_INIT(LOCAL_PATH_MAX);
    struct stat st = {.st_mode = S_IFREG};
    bool is_stdin = strcmp(source, "-") == 0, directory = false, exists = false;
    if (!is_stdin && stat(source, &st) < 0)
        return error_sys(err, "%.200s", source);
    if (S_ISDIR(st.st_mode) && !args_flag(inv->args, "recursive"))
        return error_set(err, ERROR_IS_A_DIRECTORY, "%.200s is a directory: give --recursive",
                         source);
    if (is_remote_directory(inv, to->name, to->path, &directory, &exists, err) < 0)
        return -1;
    buf_adds(&path, to->path);
    buf_adds(&from, source);
    if (!is_stdin && (directory || to->path[strlen(to->path) - 1] == '/'))
        add_base(&path, source);
    while (path.len > 1 && path.data[path.len - 1] == '/')
        shorten(&path, path.len - 1);
    return S_ISDIR(st.st_mode) ? put_tree(inv, to->name, &path, &from, err)
                               : put_file(inv, to->name, path.data, source, err);
}

/* --- out --- */

static mode_t mode_of(const struct http_answer *answer)
{
    const char *octal = http_answer_header(answer, "X-Cella-Permissions");
    return octal == NULL ? 0644 : (mode_t)strtoul(octal, NULL, 8) & 0777;
}

/* Into the file `name` of the directory dir_fd; NULL: to standard output. */
static int get_file(struct invocation *inv, const char *sandbox, const char *path, int dir_fd,
                    const char *name, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_free_ char *piece = malloc(PIECE);
    _cleanup_(progress_end) struct progress progress;
    struct http_answer answer;
    _cleanup_fd_ int fd = -1;
    ssize_t len;
    file_target_at(inv->client, &target, "/filesystem", sandbox, path);
    progress_start(&progress, -1, name == NULL);
    if (client_stream(inv->client, "GET", &target, NULL, "application/octet-stream", &answer, err) <
        0)
        return -1;
    progress.total = answer.content_length;
    mode_t mode = mode_of(&answer);
    if (name != NULL) {
        fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                    0600);
        if (fd < 0)
            return error_sys(err, "%.200s", name);
    }
    while ((len = client_read(inv->client, piece, PIECE, err)) > 0) {
        if (output_bytes(name == NULL ? STDOUT_FILENO : fd, piece, (size_t)len, err) < 0)
            return -1;
        progress_add(&progress, (size_t)len);
    }
    if (len == 0 && fd >= 0 && fchmod(fd, mode) < 0)
        return error_sys(err, "%.200s", name);
    return len < 0 ? -1 : 0;
}

/* The last part of an entry's path, which has to be in `directory`; a copy to be freed. */
static char *entry_name(struct slice directory, struct slice path, struct error *err)
{
    size_t start = directory.len + (directory.len > 1);
    bool below = path.len > start && memcmp(path.data, directory.data, directory.len) == 0 &&
                 path.data[start - 1] == '/';
    char *name = below ? strndup(path.data + start, path.len - start) : NULL;
    if (name == NULL || strlen(name) != path.len - start || strchr(name, '/') != NULL ||
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        error_set(err, ERROR_INVALID_PATH, "the sandbox has a file with an impossible name");
        free(name);
        return NULL;
    }
    return name;
}

static int get_entry(struct invocation *inv, const char *sandbox, yyjson_val *entry,
                     struct slice path, int dir_fd, const char *name, struct error *err)
{
    struct slice type = client_text(entry, "/type"), target;
    if (type.len == 0) {
        _cleanup_free_ char *whole = strndup(path.data, path.len);
        return whole == NULL ? error_sys(err, "%.200s", name)
                             : get_file(inv, sandbox, whole, dir_fd, name, err);
    }
    if (client_exact(inv->client, entry, "target", &target, err) < 0)
        return -1;
    _cleanup_free_ char *to = strndup(target.len == 0 ? "" : target.data, target.len);
    if (slice_eq(type, slice_of("symlink")) && to != NULL && to[0] != '\0') {
        if (symlinkat(to, dir_fd, name) < 0 && errno != EEXIST)
            return error_sys(err, "%.200s", name);
        return 0;
    }
    dprintf(STDERR_FILENO, "cella: left out, as it is no file: %s\n", name);
    return 0;
}

static int get_tree(struct invocation *inv, const char *sandbox, yyjson_val *directory, int dir_fd,
                    struct error *err)
{
    struct slice here, path;
    size_t i, count;
    yyjson_val *entry;
    if (client_exact(inv->client, directory, "path", &here, err) < 0)
        return -1;
    yyjson_arr_foreach(yyjson_obj_get(directory, "files"), i, count, entry)
    {
        if (client_exact(inv->client, entry, "path", &path, err) < 0)
            return -1;
        _cleanup_free_ char *name = entry_name(here, path, err);
        if (name == NULL || get_entry(inv, sandbox, entry, path, dir_fd, name, err) < 0)
            return -1;
    }
    yyjson_arr_foreach(yyjson_obj_get(directory, "subdirectories"), i, count, entry)
    {
        if (client_exact(inv->client, entry, "path", &path, err) < 0)
            return -1;
        _cleanup_free_ char *name = entry_name(here, path, err);
        if (name == NULL)
            return -1;
        if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
            return error_sys(err, "%.200s", name);
        _cleanup_fd_ int below =
            openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            return error_sys(err, "%.200s", name);
        if (get_tree(inv, sandbox, entry, below, err) < 0)
            return -1;
    }
    return 0;
}

static int copy_tree_out(struct invocation *inv, const struct place *from, const char *target,
                         struct error *err)
{
    _cleanup_buf_ struct buf url = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    file_target_at(inv->client, &url, "/filesystem/tree", from->name, from->path);
    if (client_json(inv->client, "GET", &url, NULL, 0, &root, err) < 0)
        return -1;
    if (yyjson_get_bool(yyjson_obj_get(root, "truncated")))
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "%.200s has more in it than one answer holds: copy its parts", from->path);
    if (mkdir(target, 0755) < 0 && errno != EEXIST)
        return error_sys(err, "%.200s", target);
    _cleanup_fd_ int dir = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return error_sys(err, "%.200s", target);
    return get_tree(inv, from->name, root, dir, err);
}

static int copy_out(struct invocation *inv, const struct place *from, const char *target,
                    struct error *err)
{
    _cleanup_buf_ struct buf path = BUF_INIT(LOCAL_PATH_MAX);
    struct stat st;
    bool directory, exists;
    if (strcmp(target, "-") == 0)
        return get_file(inv, from->name, from->path, -1, NULL, err);
    if (is_remote_directory(inv, from->name, from->path, &directory, &exists, err) < 0)
        return -1;
    if (!exists)
        return error_set(err, ERROR_FILE_NOT_FOUND, "%.200s: there is no such file in %s",
                         from->path, from->name);
    if (directory && !args_flag(inv->args, "recursive"))
        return error_set(err, ERROR_IS_A_DIRECTORY, "%.200s is a directory: give --recursive",
                         from->path);
    buf_adds(&path, target);
    if (stat(target, &st) == 0 && S_ISDIR(st.st_mode))
        add_base(&path, from->path);
    if (buf_check(&path, "a path", err) < 0)
        return -1;
    return directory ? copy_tree_out(inv, from, path.data, err)
                     : get_file(inv, from->name, from->path, AT_FDCWD, path.data, err);
}

int verb_cp(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_(place_release) struct place from = place_read(args_word(inv->args, "SOURCE"));
    _cleanup_(place_release) struct place to = place_read(args_word(inv->args, "TARGET"));
    if ((from.name == NULL) == (to.name == NULL))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "one of SOURCE and TARGET has to be NAME:PATH in a sandbox, the other a "
                         "path on this machine");
    return to.name != NULL ? copy_in(inv, from.path, &to, err) : copy_out(inv, &from, to.path, err);
}
