/* SPDX-License-Identifier: Apache-2.0 */

/* A list of files that holds for what it was made of, and for nothing else. */

#include "main/manifest.h"

#include "folder.h"
#include "store/store.h"

static void write_manifest(struct folder *f)
{
    struct error err = {0};
    uint64_t files = 0, bytes = 0;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_int_equal(manifest_begin(out, &err), 0);
    if (manifest_add(out, f->fd, "", &files, &bytes, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(files, 3);
    assert_int_equal(bytes, 9);
    put(f, MANIFEST_NAME, text);
    free(text);
}

static void fill(struct folder *f)
{
    put(f, "one", "1");
    close(sub_folder(f, "in\n%20 \xc3\xbc"));
    put(f, "in\n%20 \xc3\xbc/two words", "22222222");
    put(f, "empty", "");
    assert_int_equal(symlinkat("/etc/passwd", f->fd, "link"), 0); /* not its business */
    write_manifest(f);
}

static void expect(struct folder *f, enum error_code code, const char *says)
{
    struct error err = {0};
    uint64_t files = 77;
    assert_int_equal(manifest_verify(f->fd, &files, &err), -1);
    assert_int_equal(err.code, code);
    if (strstr(err.message, says) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", says, err.message);
    assert_int_equal(files, 77);
}

static void whole(void **state)
{
    struct folder *f = *state;
    struct error err = {0};
    uint64_t files = 0;
    fill(f);
    if (manifest_verify(f->fd, &files, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(files, 3);
}

static void damage(void **state)
{
    struct folder *f = *state;
    fill(f);
    put(f, "one", "2");
    expect(f, ERROR_INVALID_ARGUMENT, "one is not what the manifest says");
    put(f, "one", "11");
    expect(f, ERROR_INVALID_ARGUMENT, "one has another size");
    unlinkat(f->fd, "one", 0);
    expect(f, ERROR_INVALID_ARGUMENT, "one is missing");
    assert_int_equal(symlinkat("empty", f->fd, "one"), 0);
    expect(f, ERROR_INVALID_ARGUMENT, "one is missing");
    unlinkat(f->fd, "one", 0);
    put(f, "one", "1");
    put(f, "another", "");
    expect(f, ERROR_INVALID_ARGUMENT, "does not mention");
}

static void manifests_that_are_none(void **state)
{
    struct folder *f = *state;
    char newer[128];
    snprintf(newer, sizeof(newer), "cella-backup 1\nversion 9\nschema %d\ncreated x\n",
             store_schema_version() + 1);
    const struct {
        const char *text, *says;
        enum error_code code;
    } rows[] = {
        {"", "no manifest", ERROR_INVALID_ARGUMENT},
        {"something else\n", "no manifest", ERROR_INVALID_ARGUMENT},
        {"cella-backup 1", "no manifest", ERROR_INVALID_ARGUMENT}, /* cut off */
        {"cella-backup 2\n", "newer version", ERROR_CONFLICT},
        {"cella-backup 1\n", "no version", ERROR_INVALID_ARGUMENT},
        {"cella-backup 1\nversion 1\n", "no schema", ERROR_INVALID_ARGUMENT},
        {"cella-backup 1\nversion 1\nschema 1\n", "no time", ERROR_INVALID_ARGUMENT},
        {newer, "which knows", ERROR_CONFLICT},
        {"cella-backup 1\nversion 1\nschema 1\ncreated x\nnonsense\n", "malformed",
         ERROR_INVALID_ARGUMENT},
        {"cella-backup 1\nversion 1\nschema 1\ncreated x\nfile 00 1 one\n", "malformed",
         ERROR_INVALID_ARGUMENT},
    };
    expect(f, ERROR_INVALID_ARGUMENT, "no MANIFEST");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put(f, MANIFEST_NAME, rows[i].text);
        expect(f, rows[i].code, rows[i].says);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {TEST(whole), TEST(damage), TEST(manifests_that_are_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
