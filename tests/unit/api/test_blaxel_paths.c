/* SPDX-License-Identifier: Apache-2.0 */

/* Which dialect a path is in, and which file a path in a URL of Blaxel's is. */

#include "helpers.h"

#include "api/blaxel/box.h"
#include "api/dialect.h"
#include "base/cleanup.h"
#include "base/limits.h"

static void test_dialects(void **state)
{
    static const struct {
        const char *path;
        const struct dialect *dialect;
    } rows[] = {
        {"/", &dialect_cella},
        {"", &dialect_cella},
        {"/health", &dialect_cella},
        {"/v0", &dialect_cella},
        {"/v0/sandbox", &dialect_cella},
        {"/v0/sandbox/sandboxes", &dialect_cella},
        {"/v0/sandboxes", &dialect_blaxel},
        {"/v0/sandboxes/", &dialect_blaxel},
        {"/v0/sandboxes/a/previews/b", &dialect_blaxel},
        {"/v0/sandboxesx", &dialect_cella},
        {"/v0/volumes", &dialect_blaxel},
        {"/ws/sandbox/a/process", &dialect_cella},
        {"/ws/sandboxes/a/process", &dialect_blaxel_box},
        {"/ws/sandboxes", &dialect_blaxel_box},
        {"/ws/sandboxesx/a", &dialect_cella},
        {"/preview/abc/x", &dialect_preview},
        {"/preview", &dialect_preview},
        {"/previews/abc", &dialect_cella},
        {"/preview/sandboxes/x", &dialect_preview},
        {"//sandboxes/a", &dialect_blaxel_box},
        {"/v1/sandboxes", &dialect_scalebox},
        {"/v1", &dialect_scalebox},
        {"/v1x/sandboxes", &dialect_blaxel_box},
        {"/sandboxagent.Filesystem/Stat", &dialect_scalebox_box},
        {"/sandboxagent", &dialect_cella},
        {"/upload", &dialect_scalebox_box},
        {"/uploads", &dialect_cella},
        {"/download/tmp/x", &dialect_scalebox_box},
        {"/download", &dialect_cella},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (dialect_of(rows[i].path) != rows[i].dialect)
            fail_msg("%s is in another dialect", rows[i].path);
}

static struct slice decoded(struct arena *arena, const char *raw)
{
    struct slice path;
    struct error err;
    assert_int_equal(http_decode(arena, slice_of(raw), &path, &err), 0);
    return path;
}

static void test_paths(void **state)
{
    static const struct {
        const char *raw, *any, *absolute;
    } rows[] = {
        {"", "/", "/"},
        {"%2F", "/", "/"},
        {"/", "/", "/"},
        {"%2Ftmp%2Fa.txt", "/tmp/a.txt", "/tmp/a.txt"},
        {"%2ftmp%2fa.txt", "/tmp/a.txt", "/tmp/a.txt"},
        {"/tmp/bin", "/tmp/bin", "/tmp/bin"},
        {"//tmp//bin/", "/tmp/bin", "/tmp/bin"},
        {"plain.txt", "/workspace/plain.txt", "/plain.txt"},
        {"a/b.txt", "/workspace/a/b.txt", "/a/b.txt"},
        {"a%2Fb.txt", "/a/b.txt", "/a/b.txt"},
        {"rel%2Fb%20c.txt", "/rel/b c.txt", "/rel/b c.txt"},
        {".", "/workspace", "/"},
        {"./a", "/workspace/a", "/a"},
        {"100%25", "/workspace/100%", "/100%"},
        {"a%252Fb", "/workspace/a%2Fb", "/a%2Fb"},
        {"~", "/root", "/root"},
        {"~/x", "/root/x", "/root/x"},
        {"~%2Fx", "/root/x", "/root/x"},
        {"~x", "/workspace/~x", "/~x"},
        {"a/~/x", "/workspace/a/~/x", "/a/~/x"},
        {"a/../b", "/workspace/b", "/b"},
        {"../b", "/b", NULL},
        {"../../b", NULL, NULL},
        {"%2F..%2Fb", NULL, NULL},
        {"~/../../b", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice raw = slice_of(rows[i].raw), path = decoded(*state, rows[i].raw);
        const char *wanted[] = {rows[i].any, rows[i].absolute};
        for (int kind = BOX_PATH_ANY; kind <= BOX_PATH_ABSOLUTE; kind++) {
            char out[PATH_BYTES_MAX + 1];
            struct error err = {0};
            int rc = box_path(raw, path, (enum box_path_kind)kind, out, &err);
            if (wanted[kind] == NULL) {
                assert_int_equal(rc, -1);
                assert_int_equal(err.code, ERROR_INVALID_PATH);
                continue;
            }
            if (rc < 0)
                fail_msg("%s: %s", rows[i].raw, err.message);
            assert_string_equal(out, wanted[kind]);
        }
    }
}

static void test_paths_are_limited(void **state)
{
    char out[PATH_BYTES_MAX + 1];
    char *longest = arena_alloc(*state, PATH_BYTES_MAX + 64);
    struct error err = {0};
    memset(longest, 'a', PATH_BYTES_MAX + 63);
    struct slice path = slice_of(longest);
    assert_int_equal(box_path(path, path, BOX_PATH_ANY, out, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_dialects),
        api_test(test_paths),
        api_test(test_paths_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
