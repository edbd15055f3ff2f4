/* SPDX-License-Identifier: Apache-2.0 */

/* RFC 1321's own examples, in pieces of every size. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/md5.h"
#include "base/cleanup.h"

static void test_examples(void **state)
{
    static const struct {
        const char *text, *digest;
    } rows[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t piece = 1; piece <= 80; piece++) {
            struct md5 md5;
            unsigned char digest[MD5_SIZE];
            char text[MD5_TEXT_SIZE];
            size_t len = strlen(rows[i].text);
            md5_init(&md5);
            for (size_t at = 0; at < len; at += piece)
                md5_add(&md5, rows[i].text + at, len - at < piece ? len - at : piece);
            md5_end(&md5, digest);
            md5_text(digest, text);
            assert_string_equal(text, rows[i].digest);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
