/* SPDX-License-Identifier: Apache-2.0 */

/* Walks over folders: in which order, what they leave alone, and that no link leads out. */

#include "folder.h"

enum { SEEN_MAX = 1024 };

struct seen {
    char text[SEEN_MAX];
};

static int note(void *ctx, enum tree_moment moment, int dir_fd, const char *name, const char *path,
                const struct stat *st, struct error *err)
{
    struct seen *seen = ctx;
    size_t len = strlen(seen->text);
    snprintf(seen->text + len, SEEN_MAX - len, "%s%s ",
             moment == TREE_ENTER   ? ">"
             : moment == TREE_LEAVE ? "<"
                                    : "",
             path);
    return 0;
}

static void order(void **state)
{
    struct folder *f = *state;
    struct seen seen = {0};
    struct error err;
    close(sub_folder(f, "objects"));
    put(f, "objects/pack", "");
    close(sub_folder(f, "refs"));
    assert_int_equal(tree_walk(f->fd, "x", note, &seen, &err), 0);
    assert_string_equal(seen.text, ">x/refs <x/refs >x/objects x/objects/pack <x/objects ");
}

static void a_visitor_that_fails(void **state)
{
    struct folder *f = *state;
    struct error err;
    assert_int_equal(tree_remove(f->fd, "nothing", &err), 0);
    put(f, "file", "");
    assert_int_equal(tree_remove(f->fd, "file", &err), -1); /* it is no folder */
    assert_true(is_there(f, "file"));
}

static void depth(void **state)
{
    struct folder *f = *state;
    struct seen seen = {0};
    struct error err;
    char path[1024] = "d";
    for (int i = 0; i < 130; i++) {
        assert_int_equal(mkdirat(f->fd, path, 0700), 0);
        strncat(path, "/d", sizeof(path) - strlen(path) - 1);
    }
    assert_int_equal(tree_walk(f->fd, "", note, &seen, &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
    for (int i = 0; i < 130; i++) { /* what no walk removes */
        *strrchr(path, '/') = '\0';
        assert_int_equal(unlinkat(f->fd, path, AT_REMOVEDIR), 0);
    }
}

static void copies(void **state)
{
    struct folder *f = *state;
    struct error err;
    struct stat st;
    _cleanup_fd_ int from = sub_folder(f, "from"), to = sub_folder(f, "to");
    put(f, "from/file", "content");
    assert_int_equal(fchmodat(from, "file", 04751, 0), 0);
    close(sub_folder(f, "from/inner"));
    assert_int_equal(fchmodat(from, "inner", 0701, 0), 0);
    put(f, "from/inner/x", "");
    static const char *const passing[] = {"from/tmp_pack", "from/.tmp-1", "from/a.new",
                                          "from/a.lock"};
    for (size_t i = 0; i < ARRAY_LEN(passing); i++)
        put(f, passing[i], "");
    put(f, "from/.new", "a name like any other");
    assert_int_equal(symlinkat("/etc/passwd", from, "link"), 0);
    assert_int_equal(mkfifoat(from, "pipe", 0600), 0);
    assert_int_equal(tree_copy(from, to, &err), 0);
    assert_int_equal(fstatat(to, "file", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 04751);
    assert_int_equal(st.st_size, 7);
    assert_int_equal(fstatat(to, "inner", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0701);
    assert_true(is_there(f, "to/inner/x") && is_there(f, "to/.new"));
    static const char *const left_out[] = {"to/tmp_pack", "to/.tmp-1", "to/a.new",
                                           "to/a.lock",   "to/link",   "to/pipe"};
    for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
        assert_false(is_there(f, left_out[i]));
}

static void one_file(void **state)
{
    struct folder *f = *state;
    struct error err;
    put(f, "file", "content");
    assert_int_equal(tree_copy_file(f->fd, "file", f->fd, "copy", &err), 0);
    assert_int_equal(tree_copy_file(f->fd, "file", f->fd, "copy", &err), -1); /* never over it */
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
    assert_int_equal(tree_copy_file(f->fd, "nothing", f->fd, "x", &err), -1);
    assert_int_equal(err.code, ERROR_FILE_NOT_FOUND);
    assert_int_equal(symlinkat("file", f->fd, "link"), 0);
    assert_int_equal(tree_copy_file(f->fd, "link", f->fd, "x", &err), -1);
    close(sub_folder(f, "folder"));
    assert_int_equal(tree_copy_file(f->fd, "folder", f->fd, "x", &err), -1);
    assert_int_equal(err.code, ERROR_NOT_A_FILE);
    assert_false(is_there(f, "x"));
}

/* What a link leads to stays. */
static void removing(void **state)
{
    struct folder *f = *state;
    struct error err;
    close(sub_folder(f, "kept"));
    put(f, "kept/file", "");
    close(sub_folder(f, "gone"));
    close(sub_folder(f, "gone/inner"));
    assert_int_equal(symlinkat("../../kept", f->fd, "gone/inner/link"), 0);
    assert_int_equal(tree_remove(f->fd, "gone", &err), 0);
    assert_false(is_there(f, "gone"));
    assert_true(is_there(f, "kept/file"));
    assert_int_equal(symlinkat("kept", f->fd, "link"), 0);
    assert_int_equal(tree_remove(f->fd, "link", &err), -1);
    assert_true(is_there(f, "kept/file") && is_there(f, "link"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        TEST(order),    TEST(a_visitor_that_fails), TEST(depth), TEST(copies), TEST(one_file),
        TEST(removing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
