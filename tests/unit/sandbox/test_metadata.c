/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/metadata.h"

static void label_keys(void **state)
{
    static const struct {
        const char *label;
        int good;
    } rows[] = {
        {"a=", 1},         {"team=search", 1},
        {"A.b_c-9=x", 1},  {"example.com/run=17", 1},
        {"a=b=c", 1},      {"a=with, commas and \xc3\xa4", 1},
        {"", 0},           {"=x", 0},
        {"novalue", 0},    {"-a=x", 0},
        {"a-=x", 0},       {"a b=x", 0},
        {"/a=x", 0},       {"a/=x", 0},
        {"a/b/c=x", 0},    {"ex_ample.com/a=x", 0},
        {"\xc3\xa4=x", 0}, {"a=line\nline", 0},
        {"a=\x1b[31m", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice labels = {rows[i].label, strlen(rows[i].label) + 1};
        struct error err = {0};
        print_message("%s\n", rows[i].label);
        assert_int_equal(metadata_check_labels(labels, &err), rows[i].good ? 0 : -1);
        assert_int_equal(err.code, rows[i].good ? ERROR_NONE : ERROR_INVALID_ARGUMENT);
    }
}

static int check_one(const char *prefix, size_t prefix_len, size_t name_len, size_t value_len)
{
    char label[1024];
    size_t len = 0;
    if (prefix_len > 0) {
        memset(label, prefix[0], prefix_len);
        len = prefix_len;
        label[len++] = '/';
    }
    memset(label + len, 'n', name_len);
    len += name_len;
    label[len++] = '=';
    memset(label + len, 'v', value_len);
    len += value_len;
    label[len++] = '\0';
    return metadata_check_labels((struct slice){label, len}, NULL);
}

static void labels_have_limits(void **state)
{
    assert_int_equal(check_one("p", LABEL_PREFIX_MAX, LABEL_NAME_MAX, LABEL_VALUE_MAX), 0);
    assert_int_equal(check_one("p", LABEL_PREFIX_MAX + 1, 1, 1), -1);
    assert_int_equal(check_one("p", 0, LABEL_NAME_MAX + 1, 1), -1);
    assert_int_equal(check_one("p", 0, 1, LABEL_VALUE_MAX + 1), -1);

    char many[4 * (LABELS_MAX + 1)];
    for (size_t i = 0; i <= LABELS_MAX; i++)
        memcpy(many + 3 * i, "a=", 3);
    assert_int_equal(metadata_check_labels((struct slice){many, 3 * LABELS_MAX}, NULL), 0);
    assert_int_equal(metadata_check_labels((struct slice){many, 3 * (LABELS_MAX + 1)}, NULL), -1);
}

static void other_words(void **state)
{
    char long_id[EXTERNAL_ID_MAX + 2] = {0};
    static char spec[BLAXEL_SPEC_MAX + 2];
    struct error err = {0};
    struct sandbox_metadata metadata = {.external_id = "Order-4711", .display_name = "Caf\xc3\xa9"};
    assert_int_equal(metadata_check(&metadata, &err), 0);
    metadata.external_id = "a_b";
    assert_int_equal(metadata_check(&metadata, &err), -1);
    assert_non_null(strstr(err.message, "externalId"));
    memset(long_id, 'x', EXTERNAL_ID_MAX);
    metadata.external_id = long_id;
    assert_int_equal(metadata_check(&metadata, &err), 0);
    long_id[EXTERNAL_ID_MAX] = 'x';
    assert_int_equal(metadata_check(&metadata, &err), -1);
    metadata.external_id = NULL;
    metadata.display_name = "two\nlines";
    assert_int_equal(metadata_check(&metadata, &err), -1);
    metadata.display_name = NULL;
    memset(spec, ' ', BLAXEL_SPEC_MAX);
    metadata.blaxel_spec = spec;
    assert_int_equal(metadata_check(&metadata, &err), 0);
    spec[BLAXEL_SPEC_MAX] = ' ';
    assert_int_equal(metadata_check(&metadata, &err), -1);
    assert_int_equal(err.code, ERROR_PAYLOAD_TOO_LARGE);
}

static void matching(void **state)
{
    static const char list[] = "team=a\0run=7\0empty=";
    struct slice labels = {list, sizeof(list)};
    static const struct {
        const char *text;
        size_t len;
        int found;
    } rows[] = {
        {"", 0, 1},       {"team=a", 7, 1}, {"run=7\0team=a", 13, 1}, {"empty=", 7, 1},
        {"team=b", 7, 0}, {"team=", 6, 0},  {"run=7\0team=b", 13, 0}, {"other=", 7, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(metadata_has_labels(labels, (struct slice){rows[i].text, rows[i].len}),
                         rows[i].found);
}

static void copies(void **state)
{
    static const char list[] = "team=a\0run=7";
    struct sandbox_metadata from = {
        .labels = {list, sizeof(list)}, .external_id = "x", .display_name = ""};
    struct sandbox_metadata copy;
    assert_int_equal(metadata_copy(&from, &copy), 0);
    assert_true(slice_eq(copy.labels, from.labels));
    assert_ptr_not_equal(copy.labels.data, from.labels.data);
    assert_string_equal(copy.external_id, "x");
    assert_null(copy.display_name);
    assert_null(copy.blaxel_spec);
    metadata_release(&copy);
    metadata_release(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_keys),  cmocka_unit_test(labels_have_limits),
        cmocka_unit_test(other_words), cmocka_unit_test(matching),
        cmocka_unit_test(copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
