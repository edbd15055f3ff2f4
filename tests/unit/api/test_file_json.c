/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes of files and directories, from entries that an agent could have sent. */

#include "helpers.h"

#include "api/v0/file_json.h"
#include "base/cleanup.h"

static const struct file_entry plain = {
    .path = "/home/user/file.txt",
    .type = FILE_REGULAR,
    .mode = 0755,
    .size = 5,
    .mtime_ms = 1696951800000,
    .owner = "user",
    .group = "group",
};

#define PLAIN_ATTRIBUTES                                                                           \
    "\"permissions\":\"rwxr-xr-x\",\"size\":5,"                                                    \
    "\"lastModified\":\"Tue, 10 Oct 2023 15:30:00 GMT\",\"owner\":\"user\",\"group\":\"group\""

static const char *file_text(struct arena *arena, const struct file_entry *entry,
                             struct slice content, bool as_base64)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    file_json(arena, doc, root, entry, content, as_base64);
    return text_of(arena, doc, root);
}

static void text_is_text(void **state)
{
    assert_string_equal(file_text(*state, &plain, slice_of("hello"), false),
                        "{\"path\":\"/home/user/file.txt\",\"content\":\"hello\"," PLAIN_ATTRIBUTES
                        "}");
}

static void nul_is_text(void **state)
{
    const char *text = file_text(*state, &plain, (struct slice){"a\0b", 3}, false);
    assert_non_null(strstr(text, "\"content\":\"a\\u0000b\",\"permissions\""));
    assert_non_null(strstr(text, "\"size\":3"));
}

static void binary_is_base64(void **state)
{
    const char *text = file_text(*state, &plain, (struct slice){"\xff\xfe\x00", 3}, false);
    assert_non_null(strstr(text, "\"content\":\"//4A\",\"encoding\":\"base64\""));
}

static void base64_can_be_asked_for(void **state)
{
    const char *text = file_text(*state, &plain, slice_of("hello"), true);
    assert_non_null(strstr(text, "\"content\":\"aGVsbG8=\",\"encoding\":\"base64\""));
    text = file_text(*state, &plain, slice_of(""), true);
    assert_non_null(strstr(text, "\"content\":\"\",\"encoding\":\"base64\""));
}

static void far_future_is_clamped(void **state)
{
    struct file_entry entry = plain;
    entry.mtime_ms = UINT64_MAX;
    assert_non_null(strstr(file_text(*state, &entry, slice_of(""), false),
                           "\"lastModified\":\"Fri, 31 Dec 9999 23:59:59 GMT\""));
}

static const char *directory_text(struct arena *arena, const char *path,
                                  const struct file_entry *items, size_t count)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    directory_json(arena, doc, root, path, items, count);
    return text_of(arena, doc, root);
}

static void empty_directory(void **state)
{
    assert_string_equal(directory_text(*state, "/empty", NULL, 0),
                        "{\"path\":\"/empty\",\"files\":[],\"subdirectories\":[]}");
}

static void directory_sorts_by_kind(void **state)
{
    struct file_entry items[] = {plain, plain, plain, plain};
    items[0].path = "file.txt";
    items[1].path = "subdir";
    items[1].type = FILE_DIRECTORY;
    items[2].path = "link";
    items[2].type = FILE_SYMLINK;
    items[2].target = "file.txt";
    items[3].path = "pipe";
    items[3].type = FILE_OTHER;
    assert_string_equal(directory_text(*state, "/home/user", items, 4),
                        "{\"path\":\"/home/user\",\"files\":["
                        "{\"path\":\"/home/user/file.txt\"," PLAIN_ATTRIBUTES "},"
                        "{\"path\":\"/home/user/link\"," PLAIN_ATTRIBUTES
                        ",\"type\":\"symlink\",\"target\":\"file.txt\"},"
                        "{\"path\":\"/home/user/pipe\"," PLAIN_ATTRIBUTES ",\"type\":\"other\"}],"
                        "\"subdirectories\":[{\"path\":\"/home/user/subdir\"}]}");
}

static void root_has_one_slash(void **state)
{
    struct file_entry item = {.path = "etc", .type = FILE_DIRECTORY};
    assert_non_null(strstr(directory_text(*state, "/", &item, 1), "[{\"path\":\"/etc\"}]"));
}

static void a_name_of_any_bytes_stays_reachable(void **state)
{
    struct file_entry item = {.path = "\xff", .type = FILE_DIRECTORY};
    assert_non_null(strstr(directory_text(*state, "/d", &item, 1),
                           "[{\"path\":\"/d/\xef\xbf\xbd\",\"pathBase64\":\"L2Qv/w==\"}]"));
}

static void a_type_from_nowhere_is_other(void **state)
{
    struct file_entry item = plain;
    item.type = 77;
    assert_non_null(strstr(directory_text(*state, "/d", &item, 1), "\"type\":\"other\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(text_is_text),
        api_test(nul_is_text),
        api_test(binary_is_base64),
        api_test(base64_can_be_asked_for),
        api_test(far_future_is_clamped),
        api_test(empty_directory),
        api_test(directory_sorts_by_kind),
        api_test(root_has_one_slash),
        api_test(a_name_of_any_bytes_stays_reachable),
        api_test(a_type_from_nowhere_is_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
