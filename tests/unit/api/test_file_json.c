/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes of files in lists, from entries that an agent could have sent. */

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

static const char *entry_text(struct arena *arena, const char *directory,
                              const struct file_entry *entry)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    file_shape.entry(arena, doc, root, directory, entry);
    return text_of(arena, doc, root);
}

static void the_size_is_what_was_read(void **state)
{
    yyjson_mut_doc *doc = json_doc(*state);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    file_attributes_json(*state, doc, root, &plain, 3);
    assert_non_null(strstr(text_of(*state, doc, root), "\"size\":3"));
}

static void far_future_is_clamped(void **state)
{
    struct file_entry entry = plain;
    entry.mtime_ms = UINT64_MAX;
    assert_non_null(strstr(entry_text(*state, "/d", &entry),
                           "\"lastModified\":\"Fri, 31 Dec 9999 23:59:59 GMT\""));
}

static void entries_say_what_they_are(void **state)
{
    struct file_entry file = plain, link = plain, pipe = plain, directory = plain;
    file.path = "file.txt";
    directory.path = "subdir";
    directory.type = FILE_DIRECTORY;
    link.path = "link";
    link.type = FILE_SYMLINK;
    link.target = "file.txt";
    pipe.path = "pipe";
    pipe.type = FILE_OTHER;
    assert_string_equal(entry_text(*state, "/home/user", &file),
                        "{\"path\":\"/home/user/file.txt\"," PLAIN_ATTRIBUTES "}");
    assert_string_equal(entry_text(*state, "/home/user", &link),
                        "{\"path\":\"/home/user/link\"," PLAIN_ATTRIBUTES
                        ",\"type\":\"symlink\",\"target\":\"file.txt\"}");
    assert_string_equal(entry_text(*state, "/home/user", &pipe),
                        "{\"path\":\"/home/user/pipe\"," PLAIN_ATTRIBUTES ",\"type\":\"other\"}");
    assert_string_equal(entry_text(*state, "/home/user", &directory),
                        "{\"path\":\"/home/user/subdir\"}");
}

static void root_has_one_slash(void **state)
{
    struct file_entry item = {.path = "etc", .type = FILE_DIRECTORY};
    assert_string_equal(entry_text(*state, "/", &item), "{\"path\":\"/etc\"}");
}

static void a_name_of_any_bytes_stays_reachable(void **state)
{
    struct file_entry item = {.path = "\xff", .type = FILE_DIRECTORY};
    assert_string_equal(entry_text(*state, "/d", &item),
                        "{\"path\":\"/d/\xef\xbf\xbd\",\"pathBase64\":\"L2Qv/w==\"}");
}

static void a_type_from_nowhere_is_other(void **state)
{
    struct file_entry item = plain;
    item.type = 77;
    assert_non_null(strstr(entry_text(*state, "/d", &item), "\"type\":\"other\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(the_size_is_what_was_read),           api_test(far_future_is_clamped),
        api_test(entries_say_what_they_are),           api_test(root_has_one_slash),
        api_test(a_name_of_any_bytes_stays_reachable), api_test(a_type_from_nowhere_is_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
