/* SPDX-License-Identifier: Apache-2.0 */

/* What history takes from an agent that says whatever it likes, and what it does not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/history_tree.h"
#include "agent_play.h"

static const char roots[] = "/workspace\0/home/user";

enum question { LIST, READ, APPLY, WATCH };

struct play {
    struct agent_play box;
    enum question question;
    uint64_t entries_max;
    char seen[512]; /* paths and contents, one after the other */
    struct history_listed listed;
    struct history_applied applied;
    int watch_fd;
    struct arena *arena;
    int rc;
    struct error err;
};

static void note(struct play *play, const char *text, size_t len)
{
    size_t have = strlen(play->seen);
    assert_true(have + len < sizeof(play->seen));
    memcpy(play->seen + have, text, len);
}

static int visit(void *ctx, const struct history_entry *entry, struct error *err)
{
    note(ctx, entry->path, strlen(entry->path));
    note(ctx, " ", 1);
    return 0;
}

static int begin(void *ctx, const struct history_entry *entry, struct error *err)
{
    note(ctx, entry->flags & HISTORY_NO_CONTENT ? "-" : "+", 1);
    return visit(ctx, entry, err);
}

static int data(void *ctx, struct slice bytes, struct error *err)
{
    note(ctx, bytes.data, bytes.len);
    return 0;
}

static int end(void *ctx, bool torn, struct error *err)
{
    note(ctx, torn ? "~" : ".", 1);
    return 0;
}

static int apply(struct play *play, struct history_tree *tree)
{
    struct history_item file = {.op = HISTORY_FILE, .path = "/workspace/f", .size = 5};
    struct history_item gone = {.op = HISTORY_REMOVE, .path = "/workspace/g"};
    if (history_tree_apply_begin(tree, &play->err) < 0 ||
        history_tree_apply_item(tree, &file, &play->err) < 0 ||
        history_tree_apply_put(tree, slice_of("hello"), &play->err) < 0 ||
        history_tree_apply_item(tree, &gone, &play->err) < 0)
        return -1;
    return history_tree_apply_end(tree, play->arena, &play->applied, &play->err);
}

static int ask(struct play *play, struct history_tree *tree)
{
    static const struct history_sink sink = {begin, data, end};
    static const char *const paths[] = {"/workspace/f", "/workspace/g"};
    switch (play->question) {
    case LIST:
        return history_tree_list(tree, (struct slice){0}, play->entries_max, visit, play,
                                 &play->listed, &play->err);
    case READ:
        return history_tree_read(tree, paths, 2, 100, &sink, play, &play->err);
    case APPLY:
        return apply(play, tree);
    case WATCH:
        return history_tree_watch(tree, &play->watch_fd, &play->err);
    }
    return -1;
}

static void asker(void *arg)
{
    struct play *play = arg;
    struct history_tree *tree = NULL;
    play->rc = history_tree_open(&play->box.sandboxes, "default", "box",
                                 (struct slice){roots, sizeof(roots)}, &tree, &play->err);
    if (play->rc == 0)
        play->rc = ask(play, tree);
    history_tree_close(tree);
}

static void run(struct play *play)
{
    agent_play_run(&play->box, asker, play);
}

#define PLAY(q)                                                                                    \
    {                                                                                              \
        .box = AGENT_PLAY(1 << 20), .question = (q), .entries_max = 3                              \
    }

static void add_entry(struct play *play, struct history_entry entry)
{
    wire_encode(&play->box.script, &history_entry_schema, 1, &entry);
}

static void add_listed(struct play *play)
{
    wire_encode(&play->box.script, &history_listed_schema, 1,
                &(struct history_listed){.entries = 1, .watched = 1});
}

/* --- listing --- */

static void test_list(void **state)
{
    struct play play = PLAY(LIST);
    add_entry(&play, (struct history_entry){.path = "/workspace", .type = FILE_DIRECTORY});
    add_entry(&play, (struct history_entry){.path = "/workspace/a\nb", .flags = HISTORY_FRESH});
    add_entry(&play, (struct history_entry){
                         .path = "/home/user/l", .type = FILE_SYMLINK, .target = "/etc"});
    add_listed(&play);
    run(&play);
    assert_int_equal(play.rc, 0);
    assert_string_equal(play.seen, "/workspace /workspace/a\nb /home/user/l ");
    assert_int_equal(play.listed.watched, 1);
}

static void test_lies_in_a_listing(void **state)
{
    static const struct history_entry lies[] = {
        {.path = "/etc/passwd"},
        {.path = "workspace/f"},
        {.path = "/workspacex/f"},
        {.path = "/workspace/"},
        {.path = "/workspace//f"},
        {.path = "/workspace/../etc/passwd"},
        {.path = "/workspace/./f"},
        {.path = "/workspace/.."},
        {.path = "/"},
        {.path = ""},
        {.path = "/workspace/f", .type = FILE_OTHER},
        {.path = "/workspace/f", .type = 17},
        {.path = "/workspace/f", .mode = 010000},
        {.path = "/workspace/f", .uid = UINT64_MAX},
        {.path = "/workspace/f", .gid = 0xffffffff},
        {.path = "/workspace/f", .target = "x"},
        {.path = "/workspace/f", .type = FILE_SYMLINK},
        {.path = "/workspace/f", .type = FILE_SYMLINK, .target = ""},
        {.path = "/workspace/f", .flags = HISTORY_GONE},
        {.path = "/workspace/f", .flags = HISTORY_NO_CONTENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct play play = PLAY(LIST);
        add_entry(&play, lies[i]);
        add_listed(&play);
        run(&play);
        if (play.rc == 0 || play.err.code != ERROR_UNAVAILABLE || play.seen[0] != '\0')
            fail_msg("row %zu (%s): %d %s %s", i, lies[i].path, play.rc, play.err.message,
                     play.seen);
    }
}

static void test_a_listing_without_end(void **state)
{
    struct play play = PLAY(LIST);
    for (int i = 0; i < 4; i++)
        add_entry(&play, (struct history_entry){.path = "/workspace/f"});
    add_listed(&play);
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_int_equal(play.err.code, ERROR_LIMIT_EXCEEDED);
    assert_string_equal(play.seen, "/workspace/f /workspace/f /workspace/f ");
}

static void test_other_answers(void **state)
{
    for (enum question q = LIST; q <= APPLY; q++) {
        struct play play = PLAY(q), silent = PLAY(q), failing = PLAY(q);
        wire_encode(&play.box.script, &agent_about_schema, 1, &(struct agent_about){1, 2});
        run(&play);
        assert_int_equal(play.rc, -1);
        run(&silent);
        assert_int_equal(silent.rc, -1);
        struct error full;
        error_set(&full, ERROR_CONFLICT, "full");
        wire_encode_error(&failing.box.script, 1, &full);
        run(&failing);
        assert_int_equal(failing.rc, -1);
        assert_string_equal(failing.err.message, "full");
    }
}

/* --- contents --- */

static void add_content(struct play *play, struct history_entry entry, const char *bytes,
                        uint64_t torn)
{
    add_entry(play, entry);
    if (bytes == NULL)
        return;
    if (*bytes != '\0')
        wire_encode_raw(&play->box.script, FILE_DATA, 1, bytes, strlen(bytes));
    wire_encode(&play->box.script, &history_read_end_schema, 1, &(struct history_read_end){torn});
}

static void test_read(void **state)
{
    struct play play = PLAY(READ);
    add_content(&play, (struct history_entry){.path = "/workspace/f", .size = 5}, "hello", 1);
    add_content(&play, (struct history_entry){.path = "/workspace/g", .flags = HISTORY_GONE}, NULL,
                0);
    wire_encode(&play.box.script, &wire_ok_schema, 1, NULL);
    run(&play);
    assert_int_equal(play.rc, 0);
    assert_string_equal(play.seen, "+/workspace/f hello~-/workspace/g ");
}

static void test_lies_in_contents(void **state)
{
    static const struct {
        struct history_entry entry;
        const char *bytes;
    } lies[] = {
        {{.path = "/workspace/other", .size = 5}, "hello"},
        {{.path = "/etc/passwd", .size = 5}, "hello"},
        {{.path = "/workspace/f", .size = 4}, "hello"},
        {{.path = "/workspace/f", .size = 6}, "hello"},
        {{.path = "/workspace/f", .size = 101}, "hello"},
        {{.path = "/workspace/f", .size = UINT64_MAX}, "hello"},
        {{.path = "/workspace/f", .type = FILE_DIRECTORY, .size = 5}, "hello"},
        {{.path = "/workspace/f", .type = FILE_OTHER, .size = 5}, "hello"},
        {{.path = "/workspace/f", .size = 5, .flags = HISTORY_NO_CONTENT}, "hello"},
    };
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct play play = PLAY(READ);
        add_content(&play, lies[i].entry, lies[i].bytes, 0);
        add_content(&play, (struct history_entry){.path = "/workspace/g"}, "", 0);
        wire_encode(&play.box.script, &wire_ok_schema, 1, NULL);
        run(&play);
        if (play.rc == 0 || play.err.code != ERROR_UNAVAILABLE || strchr(play.seen, '.') != NULL)
            fail_msg("row %zu: %d %s %s", i, play.rc, play.err.message, play.seen);
    }
}

/* --- applying --- */

static void test_apply(void **state)
{
    static const char left[] = "/workspace/f\0no room";
    struct play play = PLAY(APPLY);
    play.arena = arena_new();
    wire_encode(&play.box.script, &history_applied_schema, 1,
                &(struct history_applied){
                    .done = 1, .failed = 1, .failure = "no room", .left = {left, sizeof(left)}});
    run(&play);
    assert_int_equal(play.rc, 0);
    assert_int_equal(play.applied.failed, 1);
    assert_string_equal(play.applied.failure, "no room");
    assert_true(slice_eq(play.applied.left, (struct slice){left, sizeof(left)}));
    arena_free(play.arena);
}

static void test_lies_about_what_was_done(void **state)
{
    static const char pair[] = "/workspace/f\0no room", odd[] = "/workspace/f",
                      two[] = "/workspace/f\0no room\0/workspace/g\0no room";
    const struct history_applied lies[] = {
        {.done = 3},
        {.done = 1},
        {.failed = 3},
        {.done = UINT64_MAX, .failed = 3},
        {.done = 2, .left = {pair, sizeof(pair)}},
        {.done = 1, .failed = 1, .left = {odd, sizeof(odd)}},
        {.done = 1, .failed = 1, .left = {two, sizeof(two)}},
    };
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct play lie = PLAY(APPLY);
        lie.arena = arena_new();
        wire_encode(&lie.box.script, &history_applied_schema, 1, &lies[i]);
        run(&lie);
        if (lie.rc == 0)
            fail_msg("row %zu", i);
        arena_free(lie.arena);
    }
}

/* --- the watch --- */

static size_t count_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* One descriptor is taken, with an answer that says nothing else; whatever comes beside it is not
 * kept. */
static void test_watch(void **state)
{
    static const struct {
        size_t fds;
        uint16_t type;
        int rc;
    } rows[] = {
        {1, WIRE_OK, 0}, {3, WIRE_OK, 0}, {0, WIRE_OK, -1}, {1, 99, -1}, {2, HISTORY_LISTED, -1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct play play = PLAY(WATCH);
        unsigned char header[FRAME_HEADER_SIZE];
        int fd = inotify_init1(IN_CLOEXEC);
        size_t before = count_fds();
        play.watch_fd = -1;
        play.box.fd_count = rows[i].fds;
        for (size_t k = 0; k < rows[i].fds; k++)
            play.box.fds[k] = fd;
        frame_header_encode(header, &(struct frame_header){0, rows[i].type, 1});
        buf_add(&play.box.script, header, sizeof(header));
        run(&play);
        assert_int_equal(play.rc, rows[i].rc);
        assert_int_equal(play.watch_fd >= 0, rows[i].rc == 0);
        if (play.watch_fd >= 0)
            close(play.watch_fd);
        assert_int_equal(count_fds(), before);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_lies_in_a_listing),
        cmocka_unit_test(test_a_listing_without_end),
        cmocka_unit_test(test_other_answers),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_lies_in_contents),
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_lies_about_what_was_done),
        cmocka_unit_test(test_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
