/* SPDX-License-Identifier: Apache-2.0 */

/* The examples of FIPS 180, in pieces of every size, and a blob's name as git gives it. */

#include "base/sha1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void hash(const char *text, size_t len, size_t piece, char out[2 * SHA1_SIZE + 1])
{
    struct sha1 sha1;
    unsigned char digest[SHA1_SIZE];
    sha1_init(&sha1);
    for (size_t at = 0; at < len; at += piece)
        sha1_add(&sha1, text + at, len - at < piece ? len - at : piece);
    sha1_end(&sha1, digest);
    for (int i = 0; i < SHA1_SIZE; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", digest[i]);
}

static void test_examples(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *digest;
    } rows[] = {
        {"", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"blob 6\0hello\n", 13, "ce013625030ba8dba906f756967f9e9ca394464a"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t piece = 1; piece < 70; piece++) {
            char out[2 * SHA1_SIZE + 1];
            hash(rows[i].text, rows[i].len, piece, out);
            assert_string_equal(out, rows[i].digest);
        }
}

static void test_long(void **state)
{
    enum { MILLION = 1000 * 1000 };
    char *text = malloc(MILLION), out[2 * SHA1_SIZE + 1];
    assert_non_null(text);
    memset(text, 'a', MILLION);
    hash(text, MILLION, 999, out);
    assert_string_equal(out, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
