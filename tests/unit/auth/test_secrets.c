/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/secrets.h"

#include "auth/seal.h"
#include "fixture.h"

#define LIST(text) ((struct slice){text, sizeof(text)})

static const unsigned char key[SEAL_KEY_SIZE] = "0123456789abcdef0123456789abcde";

static int put(struct fixture *f, const char *name, const char *value, struct slice hosts,
               struct error *err)
{
    const struct secret_request request = {.workspace = "blue",
                                           .name = name,
                                           .value = slice_of(value),
                                           .hosts = hosts,
                                           .actor = "boss"};
    struct secret_info info;
    return auth_secret_put(f->auth, &request, f->arena, &info, err);
}

static void assert_value(struct fixture *f, const char *name, const char *host, const char *value)
{
    _cleanup_wipe_ struct buf out = BUF_INIT(SECRET_VALUE_MAX + 1);
    struct error err = {0};
    if (auth_secret_value(f->auth, "blue", name, host, &out, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(out.data, value);
}

static void assert_refused(struct fixture *f, const char *workspace, const char *name,
                           const char *host, enum error_code code)
{
    _cleanup_wipe_ struct buf out = BUF_INIT(SECRET_VALUE_MAX + 1);
    struct error err = {0};
    assert_int_equal(auth_secret_value(f->auth, workspace, name, host, &out, &err), -1);
    assert_int_equal(err.code, code);
    assert_int_equal(out.len, 0);
    assert_int_equal(auth_secret_may_go(f->auth, workspace, name, host, &err), -1);
    assert_int_equal(err.code, code);
}

static void reopen(struct fixture *f, const unsigned char *with)
{
    auth_free(f->auth);
    assert_int_equal(auth_new(f->store, false, &f->auth, NULL), 0);
    assert_int_equal(auth_open_secrets(f->auth, with, NULL), 0);
}

static void test_life(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct secret_info info, *items;
    size_t count;
    assert_int_equal(auth_open_secrets(f->auth, key, &err), 0);
    assert_int_equal(put(f, "openai", "sk-1", LIST("API.OpenAI.com.\0*.example.com"), &err), 0);
    assert_value(f, "openai", "api.openai.com", "sk-1");
    assert_value(f, "openai", "a.b.example.com", "sk-1");
    assert_int_equal(auth_secret_may_go(f->auth, "blue", "openai", "*.example.com", &err), 0);
    assert_int_equal(auth_secret_may_go(f->auth, "blue", "openai", "*.a.example.com", &err), 0);
    assert_refused(f, "blue", "openai", "example.com", ERROR_FORBIDDEN);
    assert_refused(f, "blue", "openai", "badexample.com", ERROR_FORBIDDEN);
    assert_refused(f, "blue", "openai", "*.com", ERROR_FORBIDDEN);
    assert_refused(f, "blue", "openai", "*.api.openai.com", ERROR_FORBIDDEN);
    assert_refused(f, "blue", "other", "api.openai.com", ERROR_SECRET_NOT_FOUND);
    assert_refused(f, "default", "openai", "api.openai.com", ERROR_SECRET_NOT_FOUND);

    reopen(f, key); /* it is not only in memory */
    assert_value(f, "openai", "api.openai.com", "sk-1");
    /* Each of the two may stay. */
    assert_int_equal(put(f, "openai", NULL, LIST("api.openai.com"), &err), 0);
    assert_value(f, "openai", "api.openai.com", "sk-1");
    assert_refused(f, "blue", "openai", "a.example.com", ERROR_FORBIDDEN);
    assert_int_equal(put(f, "openai", "sk-2", (struct slice){0}, &err), 0);
    reopen(f, key);
    assert_value(f, "openai", "api.openai.com", "sk-2");

    assert_int_equal(auth_secret_get(f->auth, "blue", "openai", f->arena, &info, &err), 0);
    assert_string_equal(info.hosts.data, "api.openai.com");
    assert_string_equal(info.updated_by, "boss");
    auth_secrets(f->auth, "blue", f->arena, &items, &count);
    assert_int_equal(count, 1);
    auth_secrets(f->auth, "default", f->arena, &items, &count);
    assert_int_equal(count, 0);
    assert_int_equal(auth_secret_delete(f->auth, "default", "openai", &err), -1);
    assert_int_equal(err.code, ERROR_SECRET_NOT_FOUND);
    assert_int_equal(auth_secret_delete(f->auth, "blue", "openai", &err), 0);
    reopen(f, key);
    assert_refused(f, "blue", "openai", "api.openai.com", ERROR_SECRET_NOT_FOUND);
}

static void test_bad_requests(void **state)
{
    struct fixture *f = *state;
    static char large[SECRET_VALUE_MAX + 2];
    memset(large, 'x', sizeof(large) - 1);
    const struct {
        const char *name, *value;
        struct slice hosts;
        enum error_code code;
    } rows[] = {
        {"", "value-1", LIST("a.example"), ERROR_INVALID_NAME},
        {"-a", "value-1", LIST("a.example"), ERROR_INVALID_NAME},
        {"a b", "value-1", LIST("a.example"), ERROR_INVALID_NAME},
        {"a/b", "value-1", LIST("a.example"), ERROR_INVALID_NAME},
        {"a", "", LIST("a.example"), ERROR_INVALID_ARGUMENT},
        {"a", NULL, LIST("a.example"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1\n", LIST("a.example"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1\r\nX: y", LIST("a.example"), ERROR_INVALID_ARGUMENT},
        {"a", "value-\xc3\xa4", LIST("a.example"), ERROR_INVALID_ARGUMENT},
        {"a", " value-1", LIST("a.example"), ERROR_INVALID_ARGUMENT},
        {"a", large, LIST("a.example"), ERROR_PAYLOAD_TOO_LARGE},
        {"a", "value-1", {0}, ERROR_INVALID_ARGUMENT},
        {"a", "value-1", {"", 0}, ERROR_INVALID_ARGUMENT},
        {"a", "value-1", LIST("localhost"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1", LIST("127.0.0.1"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1", LIST("0x7f.1"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1", LIST("[::1]"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1", LIST("*"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1", LIST("*.com"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1", LIST("a.*.example"), ERROR_INVALID_ARGUMENT},
        {"a", "value-1", LIST("https://a.example"), ERROR_INVALID_ARGUMENT},
    };
    assert_int_equal(auth_open_secrets(f->auth, key, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        if (put(f, rows[i].name, rows[i].value, rows[i].hosts, &err) == 0)
            fail_msg("row %zu was taken", i);
        if (err.code != rows[i].code)
            fail_msg("row %zu: %s", i, err.message);
        assert_null(strstr(err.message, "value-")); /* never quoted */
    }
}

/* As E2B's clients have them: with a version and metadata, and for any host. */
static void test_versions(void **state)
{
    struct fixture *f = *state;
    struct secret_request request = {.workspace = "blue",
                                     .name = "OPENAI_API.key",
                                     .value = slice_of("sk-1"),
                                     .hosts = LIST("*"),
                                     .metadata = "{\"a\":\"b\"}",
                                     .any_host = true,
                                     .actor = "boss"};
    static char large[SECRET_METADATA_MAX + 2];
    struct secret_info info;
    struct error err = {0};
    assert_int_equal(auth_open_secrets(f->auth, key, NULL), 0);
    assert_int_equal(auth_secret_put(f->auth, &request, f->arena, &info, NULL), 0);
    assert_int_equal(info.version, 1);
    assert_value(f, "OPENAI_API.key", "any.example", "sk-1");
    request.metadata = NULL;
    request.hosts = (struct slice){0};
    assert_int_equal(auth_secret_put(f->auth, &request, f->arena, &info, NULL), 0);
    reopen(f, key);
    assert_int_equal(auth_secret_get(f->auth, "blue", "OPENAI_API.key", f->arena, &info, NULL), 0);
    assert_int_equal(info.version, 2);
    assert_string_equal(info.metadata, "{\"a\":\"b\"}");
    assert_string_equal(info.hosts.data, "*");
    memset(large, 'x', sizeof(large) - 1);
    request.metadata = large;
    assert_int_equal(auth_secret_put(f->auth, &request, f->arena, &info, &err), -1);
    assert_int_equal(err.code, ERROR_PAYLOAD_TOO_LARGE);
}

/* What is in the database is of no use with another key, or in another place. */
static void test_sealed(void **state)
{
    struct fixture *f = *state;
    static const unsigned char other[SEAL_KEY_SIZE] = "another";
    _cleanup_wipe_ struct buf sealed = BUF_INIT(1024), out = BUF_INIT(1024);
    struct error err = {0};
    assert_int_equal(auth_open_secrets(f->auth, key, &err), 0);
    assert_int_equal(put(f, "a", "value-1", LIST("a.example"), &err), 0);
    reopen(f, other);
    assert_int_equal(auth_secret_value(f->auth, "blue", "a", "a.example", &out, &err), -1);
    assert_non_null(strstr(err.message, "secret-key"));
    assert_int_equal(out.len, 0);

    assert_int_equal(seal(key, slice_of("here"), slice_of("plain"), &sealed, &err), 0);
    assert_int_equal(sealed.len, 5 + SEAL_OVERHEAD);
    assert_null(memmem(sealed.data, sealed.len, "plain", 5));
    const struct slice whole = {sealed.data, sealed.len};
    assert_int_equal(unseal(key, slice_of("there"), whole, &out, &err), -1);
    assert_int_equal(unseal(other, slice_of("here"), whole, &out, &err), -1);
    for (size_t i = 0; i < sealed.len; i++) { /* nor with a byte changed, or missing */
        sealed.data[i] ^= 1;
        assert_int_equal(unseal(key, slice_of("here"), whole, &out, &err), -1);
        sealed.data[i] ^= 1;
        assert_int_equal(unseal(key, slice_of("here"), (struct slice){sealed.data, i}, &out, &err),
                         -1);
    }
    assert_int_equal(out.len, 0);
    assert_int_equal(unseal(key, slice_of("here"), whole, &out, &err), 0);
    assert_string_equal(out.data, "plain");
}

/* A workspace of the same name, later, does not have them. */
static void test_go_with_the_workspace(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    assert_int_equal(auth_open_secrets(f->auth, key, &err), 0);
    assert_int_equal(put(f, "a", "value-1", LIST("a.example"), &err), 0);
    assert_int_equal(auth_workspace_close(f->auth, "blue", &err), 0);
    assert_int_equal(auth_workspace_delete(f->auth, "blue", &err), 0);
    assert_int_equal(auth_workspace_create(f->auth, "blue", "boss", &err), 0);
    assert_refused(f, "blue", "a", "a.example", ERROR_SECRET_NOT_FOUND);
    reopen(f, key);
    assert_refused(f, "blue", "a", "a.example", ERROR_SECRET_NOT_FOUND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_life), TEST(test_bad_requests),
                                       TEST(test_versions), TEST(test_sealed),
                                       TEST(test_go_with_the_workspace)};
    return cmocka_run_group_tests_name("auth/secrets", tests, NULL, NULL);
}
