/* SPDX-License-Identifier: Apache-2.0 */

/* The agent's half of history: noticing, listing, reading, applying; on a real file system. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/history_path.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

/* --- helpers --- */

/* The scratch folder's "w", as a list of one; valid until the next call. */
static struct slice roots_of(const struct fixture *f)
{
    static char root[128];
    int len = snprintf(root, sizeof(root), "%s/w", f->dir);
    return (struct slice){root, (size_t)len + 1};
}

static void sh(const struct fixture *f, const char *script)
{
    char line[2048];
    snprintf(line, sizeof(line), "cd %s && %s", f->dir, script);
    assert_int_equal(system(line), 0);
}

struct seen {
    struct history_listed listed;
    unsigned files, directories, symlinks;
    struct history_entry entry; /* the one that was looked for */
    bool found;
    char target[PATH_BYTES_MAX];
};

static struct seen list_with(struct client *c, struct history_list request, const char *wanted)
{
    struct seen seen = {0};
    client_send(c, &history_list_schema, 7, &request);
    for (;;) {
        struct slice payload;
        struct error err;
        struct frame_header header = client_next(c, &payload);
        assert_int_equal(header.id, 7);
        if (header.type == HISTORY_LISTED) {
            assert_int_equal(wire_decode(&history_listed_schema, payload, &seen.listed, &err), 0);
            return seen;
        }
        struct history_entry entry;
        assert_int_equal(header.type, HISTORY_ENTRY);
        assert_int_equal(wire_decode(&history_entry_schema, payload, &entry, &err), 0);
        seen.files += entry.type == FILE_REGULAR;
        seen.directories += entry.type == FILE_DIRECTORY;
        seen.symlinks += entry.type == FILE_SYMLINK;
        if (wanted == NULL || strcmp(entry.path, wanted) != 0)
            continue;
        assert_false(seen.found);
        seen.found = true;
        seen.entry = entry;
        snprintf(seen.target, sizeof(seen.target), "%s", entry.target == NULL ? "" : entry.target);
    }
}

static struct seen list(const struct fixture *f, const char *wanted)
{
    struct client c = client_open(f);
    struct history_list request = {.roots = roots_of(f), .entries_max = HISTORY_ENTRIES_MAX};
    struct seen seen = list_with(&c, request, wanted == NULL ? NULL : fixture_path(f, wanted));
    client_close(&c);
    return seen;
}

static bool is_clean(const struct fixture *f)
{
    struct client c = client_open(f);
    struct agent_clean clean;
    client_send(&c, &agent_clean_ask_schema, 3, NULL);
    client_expect(&c, &agent_clean_schema, 3, &clean);
    client_close(&c);
    return clean.clean == 1;
}

/* --- noticing --- */

static void test_clean(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    sh(f, "mkdir -p w/a/b && echo 1 > w/a/b/f && echo 1 > w/g");
    client_run(&c, f, "true", &p);
    assert_int_equal(p.clean, 0); /* nothing was ever listed */
    assert_false(is_clean(f));
    struct seen seen = list(f, NULL);
    assert_int_equal(seen.listed.watched, 1);
    assert_int_equal(seen.listed.entries, 5);
    client_run(&c, f, "cat w/g w/a/b/f && ls -R w && echo > elsewhere", &p);
    assert_int_equal(p.exit_code, 0);
    assert_int_equal(p.clean, 1);
    assert_true(is_clean(f));
    client_run(&c, f, "echo 2 > w/a/b/f", &p);
    assert_int_equal(p.clean, 0);
    client_run(&c, f, "true", &p); /* it stays so until somebody looks */
    assert_int_equal(p.clean, 0);
    list(f, NULL);
    client_run(&c, f, "true", &p);
    assert_int_equal(p.clean, 1);
    client_close(&c);
}

/* Whatever a command does that a listing would show, in whatever directory. */
static void test_every_change(void **state)
{
    static const char *const changes[] = {
        "echo x > w/a/b/new",
        "echo x >> w/a/b/f",
        "mkdir w/a/b/c",
        "touch w/a/b/c/deep",
        "mv w/a/b/c w/a/d",
        "touch w/a/d/after-the-move",
        "chmod 600 w/a/b/f",
        "ln -s nowhere w/a/link",
        "ln w/a/b/f w/a/hard",
        "echo through >> w/a/hard",
        "rm w/a/hard",
        "mv w/a/b/f f.moved",
        "mv f.moved w/a/b/f",
        "chmod 700 w",
        "rmdir w/nothing || mkdir w/nothing",
        "rm -r w/a/d",
        "mv w w2 && mkdir w",
        "touch w/new-root",
        "rm -r w",
        "mkdir w",
        "mv w2/a w/a",
    };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    sh(f, "mkdir -p w/a/b && echo 1 > w/a/b/f");
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        struct agent_process p;
        assert_int_equal(list(f, NULL).listed.watched, 1);
        client_run(&c, f, "true", &p);
        assert_int_equal(p.clean, 1);
        client_run(&c, f, changes[i], &p);
        if (p.exit_code != 0 || p.clean != 0)
            fail_msg("%s: exit code %d, %sclean", changes[i], (int)p.exit_code,
                     p.clean ? "" : "not ");
    }
    client_close(&c);
}

/* Nobody is told of what is written through a mapping; letting the file go tells. */
static void test_mapping(void **state)
{
    const struct fixture *f = *state;
    sh(f, "mkdir w && echo 12345678 > w/f");
    int fd = open(fixture_path(f, "w/f"), O_RDWR | O_CLOEXEC);
    char *at = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    close(fd);
    list(f, NULL);
    assert_true(is_clean(f));
    at[0] = 'x';
    munmap(at, 8);
    assert_false(is_clean(f));
}

/* More directories with news than one read of the queue brings, and then none. */
static void test_many_directories(void **state)
{
    const struct fixture *f = *state;
    sh(f, "mkdir w && cd w && for i in $(seq 400); do mkdir d$i; done");
    assert_int_equal(list(f, NULL).listed.entries, 401);
    assert_true(is_clean(f));
    sh(f, "for i in $(seq 400); do echo > w/d$i/f; done");
    assert_false(is_clean(f));
    assert_int_equal(list(f, NULL).files, 400);
    assert_true(is_clean(f));
}

static void test_listing_that_broke_off(void **state)
{
    const struct fixture *f = *state;
    sh(f, "mkdir w && cd w && seq 20000 | xargs touch");
    list(f, NULL);
    assert_true(is_clean(f));
    struct client c = client_open(f);
    struct history_list request = {.roots = roots_of(f), .entries_max = HISTORY_ENTRIES_MAX};
    client_send(&c, &history_list_schema, 1, &request);
    struct history_entry entry;
    client_expect(&c, &history_entry_schema, 1, &entry);
    client_close(&c); /* more is to come than a socket holds */
    assert_false(is_clean(f));
    list(f, NULL);
    assert_true(is_clean(f));
}

/* --- listing --- */

static void test_entries(void **state)
{
    const struct fixture *f = *state;
    sh(f, "mkdir -p w/empty w/dir && printf 12345 > w/dir/f && chmod 4751 w/dir/f && "
          "ln -s /etc/passwd w/link && ln -s / w/dir/root && mkfifo w/fifo && "
          "ln -s dir w/tree && truncate -s 1T w/sparse 2>/dev/null || truncate -s 1G w/sparse");
    struct seen seen = list(f, "w/dir/f");
    assert_true(seen.found);
    assert_int_equal(seen.entry.type, FILE_REGULAR);
    assert_int_equal(seen.entry.mode, 04751);
    assert_int_equal(seen.entry.size, 5);
    assert_int_equal(seen.entry.uid, geteuid());
    assert_int_equal(seen.directories, 3);
    assert_int_equal(seen.symlinks, 3);
    assert_int_equal(seen.files, 2);
    assert_int_equal(seen.listed.entries, 8);
    assert_int_equal(seen.listed.left_out, 1);
    assert_int_equal(seen.listed.cut, 0);
    seen = list(f, "w/link");
    assert_string_equal(seen.target, "/etc/passwd");
    assert_int_equal(seen.entry.size, 0);
    assert_true(list(f, "w/sparse").entry.size >= 1 << 30);
    struct stat st;
    assert_int_equal(stat(fixture_path(f, "w/dir/f"), &st), 0);
    assert_int_equal(list(f, "w/dir/f").entry.inode, st.st_ino);
}

static void test_fresh(void **state)
{
    struct history_entry old = {0}, fresh = {0};
    struct stat st = {.st_mode = S_IFREG | 0644};
    clock_gettime(CLOCK_REALTIME, &st.st_ctim);
    st.st_ctim.tv_sec -= 10;
    history_fill_entry(&old, &st);
    assert_false(old.flags & HISTORY_FRESH);
    st.st_ctim.tv_sec += 20;
    history_fill_entry(&fresh, &st);
    assert_true(fresh.flags & HISTORY_FRESH);
}

static void test_ignoring(void **state)
{
    static const char ignore[] = ".git\0*.log\0sub/cache";
    const struct fixture *f = *state;
    sh(f, "mkdir -p w/.git/objects w/sub/.git w/sub/cache w/cache && touch w/.git/x w/sub/.git/y "
          "w/sub/cache/z w/cache/kept w/a.log w/sub/b.log w/a.txt w/.cella-0123456789abcdef");
    struct client c = client_open(f);
    struct history_list request = {
        .roots = roots_of(f), .ignore = {ignore, sizeof(ignore)}, .entries_max = 100};
    struct seen seen = list_with(&c, request, NULL);
    assert_int_equal(seen.files, 2);
    assert_int_equal(seen.directories, 3);
    client_close(&c);
    sh(f, "touch w/sub/cache/more w/.git/objects/more"); /* nobody looks at them */
    assert_true(is_clean(f));
    sh(f, "touch w/cache/more");
    assert_false(is_clean(f));
}

static void test_strange_names(void **state)
{
    const struct fixture *f = *state;
    sh(f, "mkdir w");
    static const char *const names[] = {"w/a\nb", "w/-rf", "w/\xff\xfe", "w/\"quoted\\", "w/ "};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int fd = open(fixture_path(f, names[i]), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_true(list(f, names[i]).found);
}

static void test_cuts(void **state)
{
    const struct fixture *f = *state;
    sh(f, "mkdir w && cd w && seq 50 | xargs touch");
    struct client c = client_open(f);
    struct history_list request = {.roots = roots_of(f), .entries_max = 20};
    struct seen seen = list_with(&c, request, NULL);
    assert_int_equal(seen.listed.entries, 20);
    assert_int_equal(seen.listed.cut, 1);
    assert_int_equal(seen.listed.watched, 0);
    assert_false(is_clean(f));
    client_close(&c);
    /* Deeper than it goes, which is never kept, and so no cut. */
    sh(f, "rm -r w && mkdir w && p=w && for i in $(seq 120); do p=$p/d; done && mkdir -p $p");
    seen = list(f, NULL);
    assert_int_equal(seen.listed.cut, 0);
    assert_int_equal(seen.listed.left_out, 1);
    assert_int_equal(seen.listed.watched, 1);
    assert_int_equal(seen.listed.entries, 1 + HISTORY_DEPTH_MAX);
}

static void test_roots(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    static const struct {
        struct slice roots;
        enum error_code code;
    } rows[] = {
        {{"", 0}, ERROR_INVALID_ARGUMENT},
        {{"w", 2}, ERROR_INVALID_PATH},
        {{"/", 2}, ERROR_INVALID_PATH},
        {{"/tmp/../etc", 12}, ERROR_INVALID_PATH},
        {{"/tmp//x", 8}, ERROR_INVALID_PATH},
        {{"/tmp/", 6}, ERROR_INVALID_PATH},
        {{"/tmp\0/tmp/a", 12}, ERROR_INVALID_ARGUMENT},
        {{"/a\0/b\0/c\0/d\0/e", 15}, ERROR_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct history_list request = {.roots = rows[i].roots, .entries_max = 10};
        client_send(&c, &history_list_schema, 1, &request);
        client_expect_error(&c, 1, rows[i].code, NULL);
    }
    /* One that is not there is no error, and is noticed when it comes. */
    struct seen seen = list(f, NULL);
    assert_int_equal(seen.listed.entries, 0);
    assert_int_equal(seen.listed.watched, 1);
    assert_true(is_clean(f));
    sh(f, "mkdir w");
    assert_false(is_clean(f));
    /* One that is a link is not gone through. */
    sh(f, "rmdir w && ln -s /etc w");
    assert_int_equal(list(f, NULL).listed.entries, 0);
    client_close(&c);
}

/* --- contents --- */

static void send_read(struct client *c, const struct fixture *f, const char *path, uint64_t max)
{
    struct history_read request = {
        .roots = roots_of(f), .paths = {path, strlen(path) + 1}, .size_max = max};
    client_send(c, &history_read_schema, 4, &request);
}

static struct history_entry read_entry(struct client *c, const struct fixture *f, const char *name,
                                       uint64_t max)
{
    struct history_entry entry;
    send_read(c, f, fixture_path(f, name), max);
    client_expect(c, &history_entry_schema, 4, &entry);
    assert_string_equal(entry.path, fixture_path(f, name));
    entry.path = NULL;
    return entry;
}

static void test_read(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct history_read_end end;
    sh(f, "mkdir -p w/d && printf hello > w/f && : > w/empty && mkfifo w/fifo && "
          "head -c 300000 /dev/zero > w/large && ln -s f w/link && echo no > outside && "
          "ln -s .. w/up");
    assert_int_equal(read_entry(&c, f, "w/f", 100).size, 5);
    struct slice payload;
    struct frame_header header = client_next(&c, &payload);
    assert_int_equal(header.type, FILE_DATA);
    assert_memory_equal(payload.data, "hello", 5);
    client_expect(&c, &history_read_end_schema, 4, &end);
    assert_int_equal(end.torn, 0);
    client_expect(&c, &wire_ok_schema, 4, NULL);

    assert_int_equal(read_entry(&c, f, "w/empty", 100).size, 0);
    client_expect(&c, &history_read_end_schema, 4, &end);
    client_expect(&c, &wire_ok_schema, 4, NULL);

    uint64_t left = read_entry(&c, f, "w/large", 300000).size;
    for (assert_int_equal(left, 300000); left > 0; left -= payload.len) {
        assert_int_equal(client_next(&c, &payload).type, FILE_DATA);
        assert_in_range(payload.len, 1, left);
    }
    client_expect(&c, &history_read_end_schema, 4, &end);
    client_expect(&c, &wire_ok_schema, 4, NULL);

    static const struct {
        const char *name;
        uint64_t type;
        bool gone;
    } without[] = {
        {"w/large", FILE_REGULAR, false}, {"w/fifo", FILE_OTHER, false},
        {"w/d", FILE_DIRECTORY, false},   {"w/link", FILE_SYMLINK, false},
        {"w/missing", 0, true},           {"w/up/outside", 0, true},
        {"w/f/below", 0, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(without); i++) {
        struct history_entry entry = read_entry(&c, f, without[i].name, 1000);
        assert_true(entry.flags & HISTORY_NO_CONTENT);
        assert_int_equal((entry.flags & HISTORY_GONE) != 0, without[i].gone);
        assert_int_equal(entry.type, without[i].type);
        client_expect(&c, &wire_ok_schema, 4, NULL);
    }
    send_read(&c, f, fixture_path(f, "outside"), 100);
    client_expect_error(&c, 4, ERROR_INVALID_PATH, NULL);
    send_read(&c, f, fixture_path(f, "w/../outside"), 100);
    client_expect_error(&c, 4, ERROR_INVALID_PATH, NULL);
    client_close(&c);
}

/* --- applying --- */

static void send_item(struct client *c, const struct fixture *f, uint64_t op, const char *name,
                      uint64_t mode, const char *text, bool only_new)
{
    bool file = op == HISTORY_FILE;
    struct history_item msg = {.op = op,
                               .path = fixture_path(f, name),
                               .mode = mode,
                               .uid = geteuid(),
                               .gid = getegid(),
                               .size = file ? strlen(text) : 0,
                               .target = op == HISTORY_SYMLINK ? text : NULL,
                               .only_new = only_new};
    client_send(c, &history_item_schema, 5, &msg);
    if (file && *text != '\0')
        client_send_raw(c, FILE_DATA, 5, text, strlen(text));
}

static void item(struct client *c, const struct fixture *f, uint64_t op, const char *name,
                 uint64_t mode, const char *text)
{
    send_item(c, f, op, name, mode, text, false);
}

static void begin_apply(struct client *c, const struct fixture *f)
{
    client_send(c, &history_apply_schema, 5, &(struct history_apply){roots_of(f)});
}

static void end_apply(struct client *c, uint64_t done, uint64_t failed)
{
    struct history_applied applied;
    client_send(c, &file_end_schema, 5, NULL);
    client_expect(c, &history_applied_schema, 5, &applied);
    if (applied.failed != failed)
        fail_msg("%d failed: %s", (int)applied.failed, applied.failure);
    assert_int_equal(applied.done, done);
    assert_int_equal(applied.failure != NULL, failed > 0);
    size_t told = 0;
    strv_each (text, applied.left) {
        bool is_path = told++ % 2 == 0;
        if (is_path ? text[0] != '/' : strstr(text, "/w/") != NULL)
            fail_msg("a wrong text: %s", text);
    }
    assert_int_equal(told, 2 * (failed < HISTORY_LEFT_SHOWN ? failed : HISTORY_LEFT_SHOWN));
}

static void test_apply(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    sh(f, "mkdir -p w/gone/deep w/kept w/was-empty && echo old > w/f && echo x > w/gone/deep/x && "
          "echo ignored > w/kept/ignored && ln -s f w/was-link && echo f > w/was-file");
    begin_apply(&c, f);
    item(&c, f, HISTORY_REMOVE, "w/gone/deep/x", 0, NULL);
    item(&c, f, HISTORY_REMOVE, "w/gone/deep", 0, NULL);
    item(&c, f, HISTORY_REMOVE, "w/gone", 0, NULL);
    item(&c, f, HISTORY_REMOVE, "w/never", 0, NULL);
    item(&c, f, HISTORY_REMOVE, "w/f/below", 0, NULL);
    item(&c, f, HISTORY_REMOVE, "w/kept", 0, NULL); /* not empty: stays */
    item(&c, f, HISTORY_FILE, "w/f", 04755, "new");
    item(&c, f, HISTORY_FILE, "w/new/parents/f", 0600, "");
    item(&c, f, HISTORY_FILE, "w/was-link", 0644, "file");
    item(&c, f, HISTORY_FILE, "w/was-empty", 0644, "file");
    item(&c, f, HISTORY_DIRECTORY, "w/was-file", 01777, NULL);
    item(&c, f, HISTORY_SYMLINK, "w/link", 0, "../anywhere");
    item(&c, f, HISTORY_ATTRIBUTES, "w/kept", 0711, NULL);
    end_apply(&c, 13, 0);
    sh(f,
       "test ! -e w/gone && test \"$(cat w/f)\" = new && test \"$(stat -c %a w/f)\" = 4755 && "
       "test -f w/new/parents/f && test ! -L w/was-link && test \"$(cat w/was-link)\" = file && "
       "test -f w/was-empty && test -d w/was-file && test \"$(stat -c %a w/was-file)\" = 1777 && "
       "test \"$(readlink w/link)\" = ../anywhere && test \"$(stat -c %a w/kept)\" = 711 && "
       "test -f w/kept/ignored && ! find w | grep -q cella");
    client_close(&c);
}

/* What history never saw stays; what it saw nothing of, and is not there, is made. */
static void test_apply_only_new(void **state)
{
    static const char *const taken[] = {"w/large", "w/fifo", "w/link", "w/dir"};
    const struct fixture *f = *state;
    struct client c = client_open(f);
    sh(f, "mkdir -p w/dir && echo large > w/large && mkfifo w/fifo && ln -s nowhere w/link");
    begin_apply(&c, f);
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        send_item(&c, f, HISTORY_FILE, taken[i], 0644, "small", true);
        send_item(&c, f, HISTORY_SYMLINK, taken[i], 0, "target", true);
    }
    for (size_t i = 0; i < 3; i++)
        send_item(&c, f, HISTORY_DIRECTORY, taken[i], 0755, NULL, true);
    send_item(&c, f, HISTORY_FILE, "w/large/below", 0644, "small", true);
    send_item(&c, f, HISTORY_DIRECTORY, "w/dir", 0711, NULL, true);
    send_item(&c, f, HISTORY_FILE, "w/new/file", 0640, "new", true);
    send_item(&c, f, HISTORY_SYMLINK, "w/new/link", 0, "file", true);
    send_item(&c, f, HISTORY_DIRECTORY, "w/new/dir", 0700, NULL, true);
    end_apply(&c, 4, 12);
    sh(f, "test \"$(cat w/large)\" = large && test -p w/fifo && "
          "test \"$(readlink w/link)\" = nowhere && test \"$(stat -c %a w/dir)\" = 711 && "
          "test \"$(cat w/new/link)\" = new && test \"$(stat -c %a w/new/file)\" = 640 && "
          "test -d w/new/dir && ! find w | grep -q cella");
    client_close(&c);
}

/* Modes are of what history saw, and a file may be another one by now. */
static void test_apply_attributes(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    sh(f, "mkdir -p w/dir && echo > w/f && chmod 600 w/f && mkfifo -m 600 w/fifo");
    begin_apply(&c, f);
    item(&c, f, HISTORY_ATTRIBUTES, "w/f", 04755, NULL);
    item(&c, f, HISTORY_ATTRIBUTES, "w/fifo", 0755, NULL);
    item(&c, f, HISTORY_ATTRIBUTES, "w/dir", 0711, NULL);
    end_apply(&c, 1, 2);
    sh(f, "test \"$(stat -c %a w/f)\" = 600 && test \"$(stat -c %a w/fifo)\" = 600 && "
          "test \"$(stat -c %a w/dir)\" = 711");
    client_close(&c);
}

/* Links that lead out are not gone through, and the rest is done. */
static void test_apply_stays_inside(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    sh(f, "mkdir w out && echo safe > out/f && chmod 600 out/f && ln -s ../out w/out && "
          "ln -s ../out/f w/f && mkdir w/full && touch w/full/x");
    begin_apply(&c, f);
    item(&c, f, HISTORY_FILE, "w/out/f", 0644, "evil");
    item(&c, f, HISTORY_FILE, "w/out/new/f", 0644, "evil");
    item(&c, f, HISTORY_DIRECTORY, "w/out/new", 0755, NULL);
    item(&c, f, HISTORY_ATTRIBUTES, "w/out/f", 0777, NULL);
    item(&c, f, HISTORY_REMOVE, "w/out/f", 0, NULL); /* not there, as far as we see */
    item(&c, f, HISTORY_ATTRIBUTES, "w/f", 0777, NULL);
    item(&c, f, HISTORY_FILE, "w/full", 0644, "a file here");
    item(&c, f, HISTORY_FILE, "w/f", 0644, "good");
    end_apply(&c, 2, 6);
    sh(f, "test \"$(cat out/f)\" = safe && test \"$(stat -c %a out/f)\" = 600 && "
          "test ! -e out/new && test \"$(cat w/f)\" = good && test -d w/full");
    /* A path outside ends it all. */
    begin_apply(&c, f);
    item(&c, f, HISTORY_FILE, "out/f", 0644, "evil");
    client_send(&c, &file_end_schema, 5, NULL);
    client_expect_error(&c, 5, ERROR_INVALID_PATH, NULL);
    begin_apply(&c, f);
    end_apply(&c, 0, 0); /* the connection goes on */
    client_close(&c);
}

/* However many files clients are at, history has workers of its own; and not without end. */
static void test_workers(void **state)
{
    const struct fixture *f = *state;
    struct client busy[FILE_WORKERS_MAX], own[HISTORY_WORKERS_MAX];
    struct file_entry entry;
    struct history_entry listed;
    sh(f, "mkdir w");
    for (int i = 0; i < FILE_WORKERS_MAX; i++) {
        busy[i] = client_open(f);
        client_send(&busy[i], &file_stat_schema, 1, &(struct file_ref){.path = "/"});
        client_expect(&busy[i], &file_entry_schema, 1, &entry);
    }
    struct history_list request = {.roots = roots_of(f), .entries_max = 10};
    for (int i = 0; i < HISTORY_WORKERS_MAX; i++) {
        own[i] = client_open(f);
        client_send(&own[i], &history_list_schema, 1, &request);
        client_expect(&own[i], &history_entry_schema, 1, &listed);
    }
    struct client more = client_open(f);
    client_send(&more, &history_list_schema, 1, &request);
    client_expect_error(&more, 1, ERROR_LIMIT_EXCEEDED, NULL);
    client_close(&more);
    for (int i = 0; i < FILE_WORKERS_MAX; i++)
        client_close(&busy[i]);
    for (int i = 0; i < HISTORY_WORKERS_MAX; i++)
        client_close(&own[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_clean),
        TEST(test_every_change),
        TEST(test_mapping),
        TEST(test_many_directories),
        TEST(test_listing_that_broke_off),
        TEST(test_entries),
        cmocka_unit_test(test_fresh),
        TEST(test_ignoring),
        TEST(test_strange_names),
        TEST(test_cuts),
        TEST(test_roots),
        TEST(test_read),
        TEST(test_apply),
        TEST(test_apply_only_new),
        TEST(test_apply_attributes),
        TEST(test_apply_stays_inside),
        TEST(test_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
