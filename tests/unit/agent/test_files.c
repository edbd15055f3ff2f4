/* SPDX-License-Identifier: Apache-2.0 */

/* The file verbs, end to end, on a real file system. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

/* --- helpers --- */

static void put(const struct fixture *f, const char *name, const char *text, mode_t mode)
{
    int fd = open(fixture_path(f, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void assert_content(const struct fixture *f, const char *name, const char *text)
{
    char have[256] = {0};
    int fd = open(fixture_path(f, name), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("%s: %s", name, strerror(errno));
    assert_true(read(fd, have, sizeof(have) - 1) >= 0);
    close(fd);
    assert_string_equal(have, text);
}

/* Names in a directory, but for the agent's own socket. */
static int count_names(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int count = 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, ".socket") != 0)
            count++;
    closedir(dir);
    return count;
}

static void begin_write(struct client *c, const char *path, uint64_t mode)
{
    client_send(c, &file_write_schema, 1, &(struct file_write){path, mode});
}

static void write_file(struct client *c, const char *path, const char *text, uint64_t mode)
{
    begin_write(c, path, mode);
    if (*text != '\0')
        client_send_raw(c, FILE_DATA, 1, text, strlen(text));
    client_send(c, &file_end_schema, 1, NULL);
}

static struct file_entry write_ok(struct client *c, const char *path, const char *text,
                                  uint64_t mode)
{
    struct file_entry entry;
    write_file(c, path, text, mode);
    client_expect(c, &file_entry_schema, 1, &entry);
    assert_string_equal(entry.path, path);
    assert_int_equal(entry.size, strlen(text));
    return entry;
}

static void write_fails(struct client *c, const char *path, enum error_code code)
{
    struct error err;
    write_file(c, path, "text", FILE_MODE_DEFAULT);
    client_expect_error(c, 1, code, &err);
}

/* Reads into data; the entry comes first. */
static struct file_entry read_ok(struct client *c, struct file_read read, struct buf *data)
{
    struct file_entry entry;
    client_send(c, &file_read_schema, 2, &read);
    client_expect(c, &file_entry_schema, 2, &entry);
    struct file_entry copy = {.size = entry.size, .mode = entry.mode, .type = entry.type};
    buf_clear(data);
    for (;;) {
        struct slice payload;
        struct frame_header header = client_next(c, &payload);
        assert_int_equal(header.id, 2);
        if (header.type == FILE_END)
            return copy;
        assert_int_equal(header.type, FILE_DATA);
        assert_in_range(payload.len, 1, WIRE_DATA_CHUNK);
        buf_add(data, payload.data, payload.len);
    }
}

static void read_fails(struct client *c, const char *path, enum error_code code)
{
    client_send(c, &file_read_schema, 2, &(struct file_read){.path = path});
    client_expect_error(c, 2, code, NULL);
}

static void remove_is(struct client *c, const char *path, bool recursive, enum error_code code)
{
    client_send(c, &file_remove_schema, 3, &(struct file_remove){path, recursive});
    struct file_entry was;
    if (code == ERROR_NONE)
        client_expect(c, &file_entry_schema, 3, &was);
    else
        client_expect_error(c, 3, code, NULL);
}

/* --- write and read --- */

static void test_write_read(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    _cleanup_buf_ struct buf data = BUF_INIT(1 << 20);
    struct file_entry e = write_ok(&c, fixture_path(f, "a.txt"), "hello", FILE_MODE_DEFAULT);
    assert_int_equal(e.type, FILE_REGULAR);
    assert_int_equal(e.mode, 0644);
    assert_int_equal(e.uid, geteuid());
    assert_content(f, "a.txt", "hello");
    e = read_ok(&c, (struct file_read){.path = fixture_path(f, "a.txt")}, &data);
    assert_int_equal(e.size, 5);
    assert_string_equal(data.data, "hello");

    read_ok(&c, (struct file_read){fixture_path(f, "a.txt"), 1, 3}, &data);
    assert_string_equal(data.data, "ell");
    read_ok(&c, (struct file_read){fixture_path(f, "a.txt"), 3, 100}, &data);
    assert_string_equal(data.data, "lo");
    read_ok(&c, (struct file_read){fixture_path(f, "a.txt"), 5, 0}, &data);
    assert_string_equal(data.data, "");
    read_ok(&c, (struct file_read){fixture_path(f, "a.txt"), 1u << 30, 0}, &data);
    assert_string_equal(data.data, "");

    write_ok(&c, fixture_path(f, "empty"), "", FILE_MODE_DEFAULT);
    assert_content(f, "empty", "");
    read_ok(&c, (struct file_read){.path = fixture_path(f, "empty")}, &data);
    assert_int_equal(data.len, 0);
    client_close(&c);
}

static void test_big(void **state)
{
    enum { SIZE = 5 * 1000 * 1000 + 7 };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_entry entry;
    _cleanup_free_ char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31 + (i >> 12));
    begin_write(&c, fixture_path(f, "big"), FILE_MODE_DEFAULT);
    for (size_t at = 0, n; at < SIZE; at += n) {
        n = SIZE - at < 200001 ? SIZE - at : 200001;
        client_send_raw(&c, FILE_DATA, 1, bytes + at, n);
    }
    client_send(&c, &file_end_schema, 1, NULL);
    client_expect(&c, &file_entry_schema, 1, &entry);
    assert_int_equal(entry.size, SIZE);
    _cleanup_buf_ struct buf data = BUF_INIT(SIZE);
    read_ok(&c, (struct file_read){.path = fixture_path(f, "big")}, &data);
    assert_int_equal(data.len, SIZE);
    assert_memory_equal(data.data, bytes, SIZE);
    client_close(&c);
}

static void test_modes(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    assert_int_equal(write_ok(&c, fixture_path(f, "x"), "1", 0750).mode, 0750);
    assert_int_equal(write_ok(&c, fixture_path(f, "x"), "2", FILE_MODE_DEFAULT).mode, 0750);
    assert_int_equal(write_ok(&c, fixture_path(f, "x"), "3", 0).mode, 0);
    assert_int_equal(write_ok(&c, fixture_path(f, "s"), "3", 04711).mode, 04711);
    assert_int_equal(chown(fixture_path(f, "s"), 1234, 4321), 0);
    assert_int_equal(chmod(fixture_path(f, "s"), 04755), 0);
    struct file_entry e = write_ok(&c, fixture_path(f, "s"), "4", FILE_MODE_DEFAULT);
    assert_int_equal(e.uid, 1234);
    assert_int_equal(e.gid, 4321);
    assert_string_equal(e.owner, "1234");
    assert_int_equal(e.mode, 04755);
    begin_write(&c, fixture_path(f, "y"), 010000);
    client_send(&c, &file_end_schema, 1, NULL);
    client_expect_error(&c, 1, ERROR_INVALID_ARGUMENT, NULL);
    client_close(&c);
}

static void test_write_places(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    put(f, "file", "old", 0600);
    assert_int_equal(mkdir(fixture_path(f, "dir"), 0755), 0);
    assert_int_equal(mkfifo(fixture_path(f, "fifo"), 0600), 0);
    assert_int_equal(symlink("file", fixture_path(f, "link")), 0);
    assert_int_equal(symlink("new/target", fixture_path(f, "dangling")), 0);
    assert_int_equal(symlink("../..//tmp/../", fixture_path(f, "dir/up")), 0);
    assert_int_equal(symlink("loop", fixture_path(f, "loop")), 0);
    assert_int_equal(symlink(f->dir, fixture_path(f, "dir/abs")), 0);

    write_ok(&c, fixture_path(f, "a/b/../c//d/file"), "deep", FILE_MODE_DEFAULT);
    assert_content(f, "a/c/d/file", "deep");
    assert_int_equal(count_names(fixture_path(f, "a")), 2); /* b and c */
    write_ok(&c, fixture_path(f, "link"), "through", FILE_MODE_DEFAULT);
    assert_content(f, "file", "through");
    write_ok(&c, fixture_path(f, "dangling"), "made", FILE_MODE_DEFAULT);
    assert_content(f, "new/target", "made");
    write_ok(&c, fixture_path(f, "dir/abs/by-link"), "abs", FILE_MODE_DEFAULT);
    assert_content(f, "by-link", "abs");
    char climbing[256]; /* ".." stops at the root */
    snprintf(climbing, sizeof(climbing), "/../../..%s/climbed", f->dir);
    write_ok(&c, climbing, "up", FILE_MODE_DEFAULT);
    assert_content(f, "climbed", "up");

    write_fails(&c, fixture_path(f, "dir"), ERROR_IS_A_DIRECTORY);
    write_fails(&c, fixture_path(f, "newdir/"), ERROR_IS_A_DIRECTORY);
    write_fails(&c, fixture_path(f, "file/below"), ERROR_NOT_A_DIRECTORY);
    write_fails(&c, fixture_path(f, "file/below/more"), ERROR_NOT_A_DIRECTORY);
    write_fails(&c, fixture_path(f, "fifo"), ERROR_NOT_A_FILE);
    write_fails(&c, fixture_path(f, "loop"), ERROR_INVALID_PATH);
    write_fails(&c, fixture_path(f, "dir/.."), ERROR_INVALID_PATH);
    write_fails(&c, "relative", ERROR_INVALID_PATH);
    write_fails(&c, "/", ERROR_IS_A_DIRECTORY);
    write_fails(&c, "/proc/self/fd/1/x", ERROR_INVALID_PATH); /* a magic link */
    client_close(&c);
}

static void test_long_names(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    char name[300];
    memset(name, 'n', sizeof(name));
    name[255] = '\0';
    write_ok(&c, fixture_path(f, name), "x", FILE_MODE_DEFAULT);
    name[255] = 'n';
    name[256] = '\0';
    write_fails(&c, fixture_path(f, name), ERROR_INVALID_PATH);
    char path[PATH_BYTES_MAX + 1];
    memset(path, '/', sizeof(path));
    path[PATH_BYTES_MAX] = '\0';
    write_fails(&c, path, ERROR_INVALID_PATH);
    client_close(&c);
}

/* A cut connection leaves the old file as it was, and nothing new. */
static void test_cut_write(void **state)
{
    const struct fixture *f = *state;
    put(f, "kept", "old", 0644);
    static const char *const names[] = {"kept", "never"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct client c = client_open(f);
        begin_write(&c, fixture_path(f, names[i]), FILE_MODE_DEFAULT);
        client_send_raw(&c, FILE_DATA, 1, "half", 4);
        shutdown(c.fd, SHUT_WR);
        client_expect_end(&c); /* the worker is gone */
        client_close(&c);
    }
    /* In the middle of a frame, too. */
    struct client c = client_open(f);
    begin_write(&c, fixture_path(f, "kept"), FILE_MODE_DEFAULT);
    unsigned char header[FRAME_HEADER_SIZE];
    frame_header_encode(header, &(struct frame_header){1000, FILE_DATA, 1});
    assert_int_equal(write(c.fd, header, sizeof(header)), sizeof(header));
    assert_int_equal(write(c.fd, "some", 4), 4);
    shutdown(c.fd, SHUT_WR);
    client_expect_end(&c);
    client_close(&c);
    assert_content(f, "kept", "old");
    assert_int_equal(count_names(f->dir), 1);
}

/* A full disk: the sender is drained to its end, then told; the old content stays. */
static void test_full_disk(void **state)
{
    const struct fixture *f = *state;
    const char *small = fixture_path(f, "small");
    assert_int_equal(mkdir(small, 0755), 0);
    if (mount("cella-test", small, "tmpfs", 0, "size=256k") < 0)
        skip();
    put(f, "small/file", "old", 0644);
    struct client c = client_open(f);
    _cleanup_free_ char *bytes = calloc(1, 100000);
    begin_write(&c, fixture_path(f, "small/file"), FILE_MODE_DEFAULT);
    for (int i = 0; i < 20; i++)
        client_send_raw(&c, FILE_DATA, 1, bytes, 100000);
    client_send(&c, &file_end_schema, 1, NULL);
    struct error err;
    client_expect_error(&c, 1, ERROR_QUOTA_EXCEEDED, &err);
    assert_non_null(strstr(err.message, "small/file"));
    assert_content(f, "small/file", "old");
    assert_int_equal(count_names(small), 1);
    /* The connection goes on, and there is room again. */
    write_ok(&c, fixture_path(f, "small/file"), "new", FILE_MODE_DEFAULT);
    /* A mount point is not removed, nor what is in it. */
    remove_is(&c, fixture_path(f, "small"), true, ERROR_CONFLICT);
    assert_content(f, "small/file", "new");
    client_close(&c);
    assert_int_equal(umount(small), 0);
}

static void test_read_refusals(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    put(f, "file", "x", 0644);
    assert_int_equal(mkfifo(fixture_path(f, "fifo"), 0600), 0);
    assert_int_equal(symlink("nowhere", fixture_path(f, "dangling")), 0);
    read_fails(&c, f->dir, ERROR_IS_A_DIRECTORY);
    read_fails(&c, fixture_path(f, "none"), ERROR_FILE_NOT_FOUND);
    read_fails(&c, fixture_path(f, "dangling"), ERROR_FILE_NOT_FOUND);
    read_fails(&c, fixture_path(f, "fifo"), ERROR_NOT_A_FILE);
    read_fails(&c, f->socket, ERROR_NOT_A_FILE);
    read_fails(&c, "/dev/null", ERROR_NOT_A_FILE);
    read_fails(&c, fixture_path(f, "file/x"), ERROR_NOT_A_DIRECTORY);
    read_fails(&c, "file", ERROR_INVALID_PATH);
    read_fails(&c, "", ERROR_INVALID_PATH);
    read_fails(&c, "/proc/self/exe", ERROR_INVALID_PATH);
    client_send(&c, &file_read_schema, 2, &(struct file_read){"/x", UINT64_MAX, 0});
    client_expect_error(&c, 2, ERROR_INVALID_ARGUMENT, NULL);
    client_close(&c);
}

/* Files that say they are empty and are not. */
static void test_read_proc(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    _cleanup_buf_ struct buf data = BUF_INIT(1 << 20);
    struct file_entry e = read_ok(&c, (struct file_read){.path = "/proc/self/status"}, &data);
    assert_int_equal(e.size, 0);
    assert_non_null(strstr(data.data, "Name:"));
    read_ok(&c, (struct file_read){.path = "/proc/version", .offset = 6, .length = 7}, &data);
    assert_string_equal(data.data, "version");
    client_close(&c);
}

/* --- stat and list --- */

static void test_stat(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_entry e;
    put(f, "file", "12345", 0640);
    assert_int_equal(symlink("file", fixture_path(f, "link")), 0);
    assert_int_equal(mkfifo(fixture_path(f, "fifo"), 0600), 0);
    const struct timespec times[2] = {{1000000, 0}, {1234567, 890000000}};
    assert_int_equal(utimensat(AT_FDCWD, fixture_path(f, "file"), times, 0), 0);
    static const struct {
        const char *name;
        enum file_type type;
    } rows[] = {{"file", FILE_REGULAR},
                {"link", FILE_REGULAR},
                {".", FILE_DIRECTORY},
                {"fifo", FILE_OTHER}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *path = fixture_path(f, rows[i].name);
        client_send(&c, &file_stat_schema, 4, &(struct file_ref){path});
        client_expect(&c, &file_entry_schema, 4, &e);
        assert_string_equal(e.path, path);
        assert_int_equal(e.type, rows[i].type);
        assert_null(e.target);
        if (e.type == FILE_REGULAR) {
            assert_int_equal(e.size, 5);
            assert_int_equal(e.mode, 0640);
            assert_int_equal(e.mtime_ms, 1234567890);
        }
        assert_string_equal(e.owner, "root");
        assert_string_equal(e.group, "root");
    }
    client_send(&c, &file_stat_schema, 5, &(struct file_ref){fixture_path(f, "none")});
    client_expect_error(&c, 5, ERROR_FILE_NOT_FOUND, NULL);
    client_close(&c);
}

static void test_list(void **state)
{
    enum { COUNT = 2000 };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_entry e;
    char seen[COUNT] = {0};
    bool saw_link = false;
    assert_int_equal(mkdir(fixture_path(f, "many"), 0711), 0);
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof(name), "many/%d", i);
        put(f, name, "", 0644);
    }
    assert_int_equal(symlink("/no/where", fixture_path(f, "many/link")), 0);
    client_send(&c, &file_list_schema, 6, &(struct file_ref){fixture_path(f, "many")});
    client_expect(&c, &file_entry_schema, 6, &e);
    assert_string_equal(e.path, fixture_path(f, "many"));
    assert_int_equal(e.type, FILE_DIRECTORY);
    assert_int_equal(e.mode, 0711);
    for (int i = 0; i < COUNT + 1; i++) {
        client_expect(&c, &file_entry_schema, 6, &e);
        if (strcmp(e.path, "link") == 0) {
            assert_int_equal(e.type, FILE_SYMLINK);
            assert_string_equal(e.target, "/no/where");
            saw_link = true;
            continue;
        }
        long number = strtol(e.path, NULL, 10);
        assert_in_range(number, 0, COUNT - 1);
        assert_int_equal(seen[number]++, 0);
    }
    assert_true(saw_link);
    client_expect(&c, &wire_ok_schema, 6, NULL);

    client_send(&c, &file_list_schema, 7, &(struct file_ref){fixture_path(f, "many/1")});
    client_expect_error(&c, 7, ERROR_NOT_A_DIRECTORY, NULL);
    client_send(&c, &file_list_schema, 8, &(struct file_ref){fixture_path(f, "none")});
    client_expect_error(&c, 8, ERROR_FILE_NOT_FOUND, NULL);
    client_close(&c);
}

/* --- mkdir and remove --- */

static void mkdir_is(struct client *c, const char *path, uint64_t mode, enum error_code code,
                     mode_t want)
{
    struct file_entry e;
    client_send(c, &file_mkdir_schema, 9, &(struct file_mkdir){path, mode});
    if (code != ERROR_NONE) {
        client_expect_error(c, 9, code, NULL);
        return;
    }
    client_expect(c, &file_entry_schema, 9, &e);
    assert_int_equal(e.type, FILE_DIRECTORY);
    assert_int_equal(e.mode, want);
}

static void test_mkdir(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    put(f, "file", "x", 0644);
    assert_int_equal(symlink("nowhere", fixture_path(f, "dangling")), 0);
    mkdir_is(&c, fixture_path(f, "a/b/c/"), FILE_MODE_DEFAULT, ERROR_NONE, 0755);
    mkdir_is(&c, fixture_path(f, "a/b/c"), FILE_MODE_DEFAULT, ERROR_NONE, 0755);
    mkdir_is(&c, fixture_path(f, "a/d/e"), 0700, ERROR_NONE, 0700);
    mkdir_is(&c, fixture_path(f, "a/d"), FILE_MODE_DEFAULT, ERROR_NONE, 0755);
    mkdir_is(&c, fixture_path(f, "t"), 01777, ERROR_NONE, 01777);
    struct stat root;
    assert_int_equal(stat("/", &root), 0);
    mkdir_is(&c, "/", FILE_MODE_DEFAULT, ERROR_NONE, root.st_mode & 07777);
    mkdir_is(&c, fixture_path(f, "file"), FILE_MODE_DEFAULT, ERROR_ALREADY_EXISTS, 0);
    mkdir_is(&c, fixture_path(f, "file/x"), FILE_MODE_DEFAULT, ERROR_NOT_A_DIRECTORY, 0);
    mkdir_is(&c, fixture_path(f, "dangling/x"), FILE_MODE_DEFAULT, ERROR_FILE_NOT_FOUND, 0);
    mkdir_is(&c, "a", FILE_MODE_DEFAULT, ERROR_INVALID_PATH, 0);
    mkdir_is(&c, fixture_path(f, "z"), 0100000, ERROR_INVALID_ARGUMENT, 0);
    client_close(&c);
}

static void test_remove(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    put(f, "file", "x", 0644);
    assert_int_equal(mkdir(fixture_path(f, "empty"), 0755), 0);
    assert_int_equal(mkdir(fixture_path(f, "full"), 0755), 0);
    assert_int_equal(mkdir(fixture_path(f, "full/sub"), 0755), 0);
    assert_int_equal(mkdir(fixture_path(f, "safe"), 0755), 0);
    put(f, "full/sub/file", "x", 0400);
    put(f, "full/file", "x", 0644);
    put(f, "safe/file", "safe", 0644);
    assert_int_equal(symlink("../safe", fixture_path(f, "full/link")), 0);
    assert_int_equal(symlink("safe", fixture_path(f, "link")), 0);

    remove_is(&c, fixture_path(f, "none"), false, ERROR_FILE_NOT_FOUND);
    remove_is(&c, fixture_path(f, "file/x"), false, ERROR_NOT_A_DIRECTORY);
    remove_is(&c, fixture_path(f, "file"), false, ERROR_NONE);
    remove_is(&c, fixture_path(f, "file"), false, ERROR_FILE_NOT_FOUND);
    remove_is(&c, fixture_path(f, "empty/"), false, ERROR_NONE);
    remove_is(&c, fixture_path(f, "full"), false, ERROR_DIRECTORY_NOT_EMPTY);
    assert_int_equal(count_names(fixture_path(f, "full")), 3);
    remove_is(&c, fixture_path(f, "full"), true, ERROR_NONE);
    remove_is(&c, fixture_path(f, "link"), true, ERROR_NONE); /* the link, not the target */
    assert_content(f, "safe/file", "safe");
    assert_int_equal(count_names(f->dir), 1);
    remove_is(&c, "/", true, ERROR_INVALID_PATH);
    remove_is(&c, "//", true, ERROR_INVALID_PATH);
    remove_is(&c, fixture_path(f, "safe/.."), true, ERROR_INVALID_PATH);
    remove_is(&c, fixture_path(f, "safe/."), true, ERROR_INVALID_PATH);
    remove_is(&c, "safe", true, ERROR_INVALID_PATH);
    client_close(&c);
}

/* Deeper than any path can name, wider than one read of a directory. */
static void test_remove_deep(void **state)
{
    enum { DEPTH = 3000, WIDTH = 1500 };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(fd, "deep", 0755), 0);
        int next = openat(fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = next;
        int file = openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        close(file);
    }
    for (int i = 0; i < WIDTH; i++) {
        char name[32];
        snprintf(name, sizeof(name), "wide-%d", i);
        if (i % 3 == 0)
            assert_int_equal(mkdirat(fd, name, 0755), 0);
        else
            assert_int_equal(symlinkat("/", fd, name), 0);
    }
    close(fd);
    remove_is(&c, fixture_path(f, "deep"), true, ERROR_NONE);
    assert_int_equal(count_names(f->dir), 0);
    client_close(&c);
}

/* --- the worker itself --- */

static void test_worker_limit(void **state)
{
    const struct fixture *f = *state;
    struct client held[FILE_WORKERS_MAX];
    struct file_entry e;
    for (int i = 0; i < FILE_WORKERS_MAX; i++) {
        held[i] = client_open(f);
        client_send(&held[i], &file_stat_schema, 1, &(struct file_ref){"/"});
        client_expect(&held[i], &file_entry_schema, 1, &e);
    }
    struct client c = client_open(f);
    client_send(&c, &file_stat_schema, 5, &(struct file_ref){"/"});
    client_expect_error(&c, 5, ERROR_LIMIT_EXCEEDED, NULL);
    client_expect_end(&c);
    client_close(&c);
    for (int i = 0; i < FILE_WORKERS_MAX; i++)
        client_close(&held[i]);
    /* Their places come back. */
    for (bool served = false; !served;) {
        struct slice payload;
        c = client_open(f);
        client_send(&c, &file_stat_schema, 6, &(struct file_ref){"/"});
        served = client_next(&c, &payload).type == FILE_ENTRY;
        client_close(&c);
    }
}

static void test_bad_frames(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_entry e;
    client_send(&c, &file_stat_schema, 1, &(struct file_ref){"/"});
    client_expect(&c, &file_entry_schema, 1, &e);
    client_send_raw(&c, FILE_STAT, 2, "junk", 4);
    client_expect_error(&c, 2, ERROR_INVALID_ARGUMENT, NULL);
    client_send(&c, &agent_hello_schema, 3, NULL);
    client_expect_error(&c, 3, ERROR_INVALID_ARGUMENT, NULL);
    client_send_raw(&c, FILE_WRITE, 4, "junk", 4); /* its data is taken before the answer */
    client_send_raw(&c, FILE_DATA, 4, "data", 4);
    client_send(&c, &file_end_schema, 4, NULL);
    client_expect_error(&c, 4, ERROR_INVALID_ARGUMENT, NULL);
    begin_write(&c, fixture_path(f, "x"), FILE_MODE_DEFAULT); /* a stranger between the data */
    client_send(&c, &file_stat_schema, 5, &(struct file_ref){"/"});
    client_expect_end(&c);
    client_close(&c);
    assert_int_equal(count_names(f->dir), 0);

    c = client_open(f); /* the first frame alone decides */
    client_send_raw(&c, FILE_DATA, 6, "data", 4);
    client_expect_error(&c, 6, ERROR_INVALID_ARGUMENT, NULL);
    client_close(&c);
}

/* Everything in one piece, as a hurried client sends it: what the agent read goes to the worker. */
static void test_pipelined(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_entry e;
    _cleanup_buf_ struct buf frames = BUF_INIT(1 << 20);
    struct file_write write_msg = {fixture_path(f, "p"), FILE_MODE_DEFAULT};
    wire_encode(&frames, &file_write_schema, 1, &write_msg);
    wire_encode_raw(&frames, FILE_DATA, 1, "piped", 5);
    wire_encode(&frames, &file_end_schema, 1, NULL);
    wire_encode(&frames, &file_stat_schema, 2, &(struct file_ref){fixture_path(f, "p")});
    wire_encode(&frames, &file_stat_schema, 3, &(struct file_ref){fixture_path(f, "none")});
    struct error err;
    assert_int_equal(wire_write(c.fd, &frames, &err), 0);
    client_expect(&c, &file_entry_schema, 1, &e);
    client_expect(&c, &file_entry_schema, 2, &e);
    assert_int_equal(e.size, 5);
    client_expect_error(&c, 3, ERROR_FILE_NOT_FOUND, NULL);
    client_close(&c);
    assert_content(f, "p", "piped");
}

int main(void)
{
    if (geteuid() != 0)
        return 77; /* skipped: owners and mounts need root */
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_write_read),   TEST(test_big),           TEST(test_modes),
        TEST(test_write_places), TEST(test_long_names),    TEST(test_cut_write),
        TEST(test_full_disk),    TEST(test_read_refusals), TEST(test_read_proc),
        TEST(test_stat),         TEST(test_list),          TEST(test_mkdir),
        TEST(test_remove),       TEST(test_remove_deep),   TEST(test_worker_limit),
        TEST(test_bad_frames),   TEST(test_pipelined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
