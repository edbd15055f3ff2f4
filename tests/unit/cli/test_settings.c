/* SPDX-License-Identifier: Apache-2.0 */

/* Where the server is found, and to whom the key is sent. */

#include "cli/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "base/cleanup.h"
#include "cli/config.h"

static const struct option_row options[] = {
    {.name = "url", .kind = OPTION_TEXT, .value = "URL"},
    {.name = "api-key", .kind = OPTION_TEXT, .value = "KEY"},
    {.name = "workspace", .kind = OPTION_TEXT, .value = "NAME"},
    {.name = "data", .kind = OPTION_TEXT, .value = "DIR"},
    {.name = NULL},
};
static const struct verb_row verbs[] = {{"X", "go", "go", NULL, NULL, VERB_LOCAL, NULL}};
static const struct commands commands = {verbs, 1, options};

enum { LINE_MAX_WORDS = 12 };

static int find(char *const *words, struct settings *s, struct error *err)
{
    char *argv[LINE_MAX_WORDS + 2] = {(char *)"cella", (char *)"go"};
    int argc = 2;
    for (; words[argc - 2] != NULL; argc++)
        argv[argc] = words[argc - 2];
    struct args args = {0};
    int result = args_split(&commands, argc, argv, &args, err);
    if (result == 0)
        result = args_bind(&commands, &args, err);
    if (result == 0)
        result = settings_find(&args, s, err);
    args_release(&args);
    return result;
}
#define FIND(s, err, ...) find((char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL}, s, err)

static char *data_dir(void **state)
{
    return *state;
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int setup(void **state)
{
    static const char *const variables[] = {"CELLA_URL",  "CELLA_API_KEY",   "BL_API_KEY",
                                            "CELLA_DATA", "CELLA_WORKSPACE", "BL_WORKSPACE",
                                            "BL_API_URL", "CELLA_CONFIG",    "XDG_CONFIG_HOME"};
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        unsetenv(variables[i]);
    char *dir = strdup("/tmp/cella-cli-test-XXXXXX"), path[64];
    if (dir == NULL || mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/run", dir);
    setenv("HOME", dir, 1);
    *state = dir;
    return mkdir(path, 0700);
}

static int teardown(void **state)
{
    static const char *const names[] = {"run/server", "run/api.sock", "api-key",
                                        "config",     "run",          ""};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", data_dir(state), names[i]);
        remove(path);
    }
    free(*state);
    return 0;
}

/* Leaves what a server that runs, or was killed, has in its folder. */
static void put_server(const char *dir, const char *url)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char text[256];
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/run/api.sock", dir);
    unlink(address.sun_path);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    snprintf(text, sizeof(text), "1\n2\n3\n%s\n", url);
    put(dir, "run/server", text);
}

static void assert_local(const struct settings *s)
{
    assert_true(s->local);
    assert_int_equal(strncmp(s->address, "unix:/proc/self/fd/", 19), 0);
    assert_string_equal(s->address + strlen(s->address) - 9, "/api.sock");
    assert_false(s->tls);
}

static void test_data_folder(void **state)
{
    struct settings s;
    struct error err = {0};
    put_server(data_dir(state), "http://127.0.0.1:4711");
    put(data_dir(state), "api-key", "cella_secret\n");
    assert_int_equal(FIND(&s, &err, (char *)"--data", data_dir(state)), 0);
    assert_local(&s);
    assert_string_equal(s.url, "http://127.0.0.1:4711");
    assert_string_equal(s.host, "127.0.0.1:4711");
    assert_string_equal(s.key, "cella_secret");
    assert_string_equal(s.key_problem, "");

    setenv("CELLA_DATA", data_dir(state), 1);
    assert_int_equal(FIND(&s, &err), 0);
    assert_local(&s);
    /* A key that is given goes over the socket as well. */
    assert_int_equal(FIND(&s, &err, (char *)"--api-key=given"), 0);
    assert_local(&s);
    assert_string_equal(s.key, "given");
    put(data_dir(state), "run/server", "1\n2\n"); /* being written */
    assert_int_equal(FIND(&s, &err), 0);
    assert_local(&s);
    assert_int_equal(strncmp(s.url, "unix:/", 6), 0);
}

/* Without its socket there is no server, whatever an earlier one has written down. */
static void test_no_server(void **state)
{
    struct settings s;
    struct error err = {0};
    char path[256], start[256];
    put(data_dir(state), "api-key", "secret");
    put(data_dir(state), "run/server", "1\n2\n3\nhttp://127.0.0.1:4711\n");
    snprintf(start, sizeof(start), "cella server --data %s", data_dir(state));
    const char *const leftovers[] = {NULL, "run/api.sock"}; /* nothing; no socket */
    for (size_t i = 0; i < ARRAY_LEN(leftovers); i++) {
        if (leftovers[i] != NULL)
            put(data_dir(state), leftovers[i], "");
        assert_int_equal(FIND(&s, &err, (char *)"--data", data_dir(state)), 0);
        assert_int_equal(s.no_server.code, ERROR_UNAVAILABLE);
        assert_non_null(strstr(s.no_server.message, start));
        assert_string_equal(s.key, "");
    }
    snprintf(path, sizeof(path), "%s/none", data_dir(state));
    assert_int_equal(FIND(&s, &err, (char *)"--data", path), 0);
    assert_int_equal(s.no_server.code, ERROR_UNAVAILABLE);
}

/* A socket in a folder that others could have put it into is not used. */
static void test_stranger(void **state)
{
    struct settings s;
    struct error err = {0};
    char run[256];
    snprintf(run, sizeof(run), "%s/run", data_dir(state));
    put_server(data_dir(state), "http://127.0.0.1:4711");
    put(data_dir(state), "api-key", "secret");
    assert_int_equal(chmod(run, 0770), 0);
    assert_int_equal(FIND(&s, &err, (char *)"--data", data_dir(state)), 0);
    assert_int_equal(s.no_server.code, ERROR_PERMISSION_DENIED);
    assert_int_equal(chmod(run, 0750), 0);
    assert_int_equal(FIND(&s, &err, (char *)"--data", data_dir(state)), 0);
    assert_local(&s);
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(run, 12345, 0), 0);
    assert_int_equal(FIND(&s, &err, (char *)"--data", data_dir(state)), 0);
    assert_int_equal(s.no_server.code, ERROR_PERMISSION_DENIED);
    assert_non_null(strstr(s.no_server.message, "12345"));
}

static void test_order(void **state)
{
    struct settings s;
    struct error err = {0};
    put(data_dir(state), "api-key", "from-file");
    put_server(data_dir(state), "http://127.0.0.2:1");
    setenv("CELLA_DATA", data_dir(state), 1);
    setenv("CELLA_URL", "http://127.0.0.2:1", 1);
    assert_int_equal(FIND(&s, &err), 0);
    assert_local(&s);
    assert_string_equal(s.key, "from-file");
    setenv("BL_API_KEY", "from-bl", 1);
    assert_int_equal(FIND(&s, &err), 0);
    assert_string_equal(s.address, "127.0.0.2:1");
    assert_string_equal(s.key, "from-bl");
    setenv("CELLA_API_KEY", "from-env", 1);
    assert_int_equal(FIND(&s, &err, (char *)"--url=http://127.0.0.3:2/"), 0);
    assert_string_equal(s.address, "127.0.0.3:2");
    assert_string_equal(s.key, "from-env");
    assert_int_equal(FIND(&s, &err, (char *)"--api-key=given"), 0);
    assert_string_equal(s.key, "given");
}

/* The key in a folder goes to the socket in it, or nowhere. */
static void test_key_of_a_folder(void **state)
{
    static const struct {
        const char *url;
        bool own;
    } rows[] = {
        {"http://127.0.0.1:4711", true},  {"http://127.0.0.1:4711/", true},
        {"http://localhost:4711", true},  {"https://localhost:4711", true},
        {"http://127.0.0.1:4712", false}, {"http://127.0.0.2:4711", false},
        {"http://[::1]:4711", false},     {"http://192.0.2.1:4711", false},
        {"unix:/tmp/other.sock", false},
    };
    struct settings s;
    struct error err = {0};
    char url[256];
    put(data_dir(state), "api-key", "secret");
    for (int running = 0; running < 2; running++) {
        if (running)
            put_server(data_dir(state), "http://127.0.0.1:4711");
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            snprintf(url, sizeof(url), "--url=%s", rows[i].url);
            assert_int_equal(FIND(&s, &err, url, (char *)"--data", data_dir(state)), 0);
            assert_string_equal(s.key, running && rows[i].own ? "secret" : "");
            if (running && rows[i].own)
                assert_local(&s);
            else
                assert_non_null(strstr(s.key_problem, "no key was given"));
            assert_int_equal(FIND(&s, &err, url, (char *)"--api-key=given"), 0);
            assert_string_equal(s.key, "given");
            assert_false(s.local);
        }
    }
    snprintf(url, sizeof(url), "--url=unix:%s/run/api.sock", data_dir(state));
    assert_int_equal(FIND(&s, &err, url, (char *)"--data", data_dir(state)), 0);
    assert_string_equal(s.key, "secret");
    assert_local(&s);
}

/* Leaves a config as `cella login` does, and gives its path. */
static const char *log_in(void **state, const char *url, const char *key, const char *workspace)
{
    static char path[256];
    struct config config = {.found = true};
    snprintf(config.url, sizeof(config.url), "%s", url);
    snprintf(config.key, sizeof(config.key), "%s", key);
    snprintf(config.workspace, sizeof(config.workspace), "%s", workspace);
    snprintf(path, sizeof(path), "%s/config", data_dir(state));
    setenv("CELLA_CONFIG", path, 1);
    assert_int_equal(config_save(&config, NULL), 0);
    return path;
}

static void test_login(void **state)
{
    struct settings s;
    struct error err = {0};
    log_in(state, "http://192.0.2.1:80", "mine", "blue");
    assert_int_equal(FIND(&s, &err), 0);
    assert_string_equal(s.url, "http://192.0.2.1:80");
    assert_string_equal(s.key, "mine");
    assert_string_equal(s.workspace, "blue");
    /* The same server by another way. */
    assert_int_equal(FIND(&s, &err, (char *)"--url=http://192.0.2.1:80/"), 0);
    assert_string_equal(s.key, "mine");
    /* Another server does not get its key, nor its workspace. */
    assert_int_equal(FIND(&s, &err, (char *)"--url=http://192.0.2.2:80"), 0);
    assert_string_equal(s.key, "");
    assert_null(s.workspace);
    setenv("CELLA_URL", "http://192.0.2.3:80", 1);
    assert_int_equal(FIND(&s, &err), 0);
    assert_string_equal(s.url, "http://192.0.2.3:80");
    assert_string_equal(s.key, "");
    unsetenv("CELLA_URL");
    /* Nor does the server of a folder that is named. */
    put_server(data_dir(state), "http://192.0.2.1:80");
    assert_int_equal(FIND(&s, &err, (char *)"--data", data_dir(state)), 0);
    assert_local(&s);
    assert_string_equal(s.key, "");
    setenv("CELLA_WORKSPACE", "red", 1);
    assert_int_equal(FIND(&s, &err), 0);
    assert_string_equal(s.workspace, "red");
    assert_int_equal(FIND(&s, &err, (char *)"--workspace=green"), 0);
    assert_string_equal(s.workspace, "green");
    assert_int_equal(FIND(&s, &err, (char *)"--workspace=a\r\nb: c"), -1);
    assert_int_equal(err.code, ERROR_INVALID_NAME);
}

static void test_broken_login(void **state)
{
    struct settings s;
    struct error err = {0};
    const char *path = log_in(state, "http://192.0.2.1:80", "mine", "");
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(FIND(&s, &err), -1);
    assert_int_equal(err.code, ERROR_PERMISSION_DENIED);
    assert_non_null(strstr(err.message, path));
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "{\"apiKey\": \"x\"}",
                                        "{\"url\": \"x\", \"apiKey\": \"a\\nb\"}",
                                        "{\"url\": \"x\", \"key\": \"a\"}"};
    assert_int_equal(chmod(path, 0600), 0);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put(data_dir(state), "config", texts[i]);
        assert_int_equal(FIND(&s, &err), -1);
        assert_non_null(strstr(err.message, path));
    }
    bool was_there = false;
    assert_int_equal(config_remove(&was_there, &err), 0);
    assert_true(was_there);
    assert_int_equal(config_remove(&was_there, &err), 0);
    assert_false(was_there);
    setenv("CELLA_URL", "http://127.0.0.2:1", 1);
    assert_int_equal(FIND(&s, &err), 0);
}

static void test_blaxel(void **state)
{
    struct settings s;
    struct error err = {0};
    static const char *const urls[] = {"http://127.0.0.4:1/v0", "http://127.0.0.4:1/v0/",
                                       "http://127.0.0.4:1"};
    setenv("BL_WORKSPACE", "theirs", 1);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        setenv("BL_API_URL", urls[i], 1);
        assert_int_equal(FIND(&s, &err), 0);
        assert_string_equal(s.url, "http://127.0.0.4:1");
        assert_string_equal(s.workspace, "theirs");
    }
    setenv("CELLA_URL", "http://127.0.0.5:1", 1);
    assert_int_equal(FIND(&s, &err), 0);
    assert_string_equal(s.url, "http://127.0.0.5:1");
}

static void test_urls(void **state)
{
    static const struct {
        const char *url, *address, *host;
        enum error_code code;
    } rows[] = {
        {"http://127.0.0.1:7070", "127.0.0.1:7070", "127.0.0.1:7070", 0},
        {"http://127.0.0.1", "127.0.0.1:80", "127.0.0.1", 0},
        {"http://localhost:1/", "localhost:1", "localhost:1", 0},
        {"http://[::1]:7070", "[::1]:7070", "[::1]:7070", 0},
        {"http://[::1]", "[::1]:80", "[::1]", 0},
        {"unix:/run/x.sock", "unix:/run/x.sock", "localhost", 0},
        {"https://127.0.0.1:7070", "127.0.0.1:7070", "127.0.0.1:7070", 0},
        {"https://localhost/", "localhost:443", "localhost", 0},
        {"https://[::1]", "[::1]:443", "[::1]", 0},
        {"https://", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"https://h/path", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"127.0.0.1:7070", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://:80", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://h:", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://h:x", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://[::1", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://[::1]x", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://h/path", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://user@h", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"http://a b", NULL, NULL, ERROR_INVALID_ARGUMENT},
        {"ftp://h", NULL, NULL, ERROR_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct settings s = {0};
        struct error err = {0};
        int result = settings_set_url(&s, rows[i].url, &err);
        if (rows[i].address == NULL) {
            assert_int_equal(result, -1);
            assert_int_equal(err.code, rows[i].code);
            continue;
        }
        assert_int_equal(result, 0);
        assert_string_equal(s.address, rows[i].address);
        assert_string_equal(s.host, rows[i].host);
        assert_int_equal(s.tls, strncmp(rows[i].url, "https:", 6) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_data_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_server, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stranger, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_key_of_a_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_login, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_login, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blaxel, setup, teardown),
        cmocka_unit_test(test_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
