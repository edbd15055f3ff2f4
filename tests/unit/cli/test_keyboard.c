/* SPDX-License-Identifier: Apache-2.0 */

/* Which keys go through, and which are for us. */

#include "cmocka_all.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/keyboard.h"

/* Everything that goes through, with "<detach>" and "<help>" in between. */
static void filter(struct keyboard *k, const char *in, size_t len, struct buf *out)
{
    static const char *const marks[] = {
        [KEYS_TYPED] = "", [KEYS_DETACH] = "<detach>", [KEYS_HELP] = "<help>"};
    while (len > 0) {
        size_t used = 0;
        buf_adds(out, marks[keyboard_filter(k, in, len, out, &used)]);
        assert_true(used > 0 && used <= len);
        in += used;
        len -= used;
    }
}

static const struct {
    const char *in, *out;
} rows[] = {
    {"", ""},
    {"ls\r", "ls\r"},
    {"~.", "<detach>"},
    {"~?", "<help>"},
    {"~?~.", "<help><detach>"},
    {"~~", "~"},
    {"~~.", "~."},
    {"~x", "~x"},
    {"~\r~.", "~\r<detach>"},
    {"a~.", "a~."},
    {"cd ~/x\r", "cd ~/x\r"},
    {"a\r~.b", "a\r<detach>b"},
    {"a\n~?b", "a\n<help>b"},
    {"\r\r~~~.", "\r\r~~."},
};

static void test_filter(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct keyboard k = {0};
        _cleanup_buf_ struct buf out = BUF_INIT(1024);
        filter(&k, rows[i].in, strlen(rows[i].in), &out);
        assert_string_equal(out.data, rows[i].out);
    }
}

/* However the keys come in. */
static void test_one_by_one(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct keyboard k = {0};
        _cleanup_buf_ struct buf out = BUF_INIT(1024);
        for (const char *p = rows[i].in; *p != '\0'; p++)
            filter(&k, p, 1, &out);
        assert_string_equal(out.data, rows[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
