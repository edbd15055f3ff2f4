/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella run NAME code`: code as if an interpreter ran here. What it writes goes to our stdout and
 * stderr as it comes, the value of the last expression to stdout, an error to stderr, pictures to
 * files; the exit status is the run's.
 */

#include "cli/code.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "http/client.h"

enum {
    READ_SIZE = 64 * 1024,
    EVENT_MAX = 128 << 20, /* a line of the answer */
    IMAGES_MAX = 10000,    /* in one folder */
};

/* --- what comes back --- */

/* A file of its own for a picture: the first free number. */
static int open_image(const char *folder, const char *format, struct buf *path, struct error *err)
{
    for (unsigned number = 1; number <= IMAGES_MAX; number++) {
        buf_clear(path);
        buf_addf(path, "%s/image-%u.%s", folder, number, format);
        if (buf_check(path, "the path", err) < 0)
            return -1;
        int fd = open(path->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : error_sys(err, "making %s", path->data);
    }
    return error_set(err, ERROR_LIMIT_EXCEEDED, "%s has %d pictures already", folder, IMAGES_MAX);
}

static int save_image(const char *folder, const char *format, bool is_text, struct slice value,
                      struct buf *path, struct error *err)
{
    struct arena *arena = arena_new();
    struct slice bytes = value;
    int rc = is_text ? 0 : json_base64_decode(arena, value, &bytes, err);
    _cleanup_fd_ int fd = rc < 0 ? -1 : open_image(folder, format, path, err);
    if (fd < 0)
        rc = -1;
    else
        rc = output_bytes(fd, bytes.data, bytes.len, err);
    arena_free(arena);
    return rc;
}

/* A value that is no text is said to be there, and where it was put (--images); --output json has
 * all of it. */
static int print_result(const struct invocation *inv, yyjson_val *event, struct error *err)
{
    static const struct {
        const char *format;
        bool is_text;
    } pictures[] = {{"png", false}, {"jpeg", false}, {"svg", true}, {"pdf", false}};
    _cleanup_buf_ struct buf out = BUF_INIT(EVENT_MAX), path = BUF_INIT(TARGET_MAX);
    const char *folder = args_option(inv->args, "images", NULL);
    struct slice text = client_text(event, "/text");
    buf_add(&out, text.data, text.len);
    for (size_t i = 0; i < ARRAY_LEN(pictures); i++) {
        yyjson_val *value = yyjson_obj_get(event, pictures[i].format);
        if (value == NULL)
            continue;
        if (folder != NULL &&
            save_image(folder, pictures[i].format, pictures[i].is_text,
                       (struct slice){yyjson_get_str(value), yyjson_get_len(value)}, &path,
                       err) < 0)
            return -1;
        buf_addf(&out, "%s[%s%s%s]", out.len > 0 ? " " : "", pictures[i].format,
                 folder == NULL ? "" : ": ", folder == NULL ? "" : path.data);
    }
    if (out.len == 0)
        return 0;
    buf_addc(&out, '\n');
    return output_bytes(STDOUT_FILENO, out.data, out.len, err);
}

static int print_error(yyjson_val *event, struct error *err)
{
    struct slice text = client_text(event, "/traceback");
    if (output_bytes(STDERR_FILENO, text.data, text.len, err) < 0)
        return -1;
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        return 0;
    return output_bytes(STDERR_FILENO, "\n", 1, err);
}

static int print_event(const struct invocation *inv, yyjson_val *event, int *status,
                       struct error *err)
{
    struct slice type = client_text(event, "/type"), text = client_text(event, "/text");
    if (slice_eq(type, slice_of("stdout")))
        return output_bytes(STDOUT_FILENO, text.data, text.len, err);
    if (slice_eq(type, slice_of("stderr")))
        return output_bytes(STDERR_FILENO, text.data, text.len, err);
    if (slice_eq(type, slice_of("result")))
        return print_result(inv, event, err);
    if (slice_eq(type, slice_of("error")))
        return print_error(event, err);
    if (slice_eq(type, slice_of("end")))
        *status = (int)(yyjson_get_uint(yyjson_obj_get(event, "exitCode")) & 255);
    return 0;
}

/* Its memory goes with it: a run may last for days. */
static int print_line(const struct invocation *inv, struct slice line, int *status,
                      struct error *err)
{
    struct arena *arena = arena_new();
    yyjson_val *event;
    int rc = json_parse(arena, line, &event, err);
    if (rc == 0 && inv->json) {
        _cleanup_buf_ struct buf out = BUF_INIT(EVENT_MAX);
        buf_add(&out, line.data, line.len);
        buf_addc(&out, '\n');
        rc = output_buf(&out, err);
        if (slice_eq(client_text(event, "/type"), slice_of("end")))
            rc = rc < 0 ? rc : print_event(inv, event, status, err);
    } else if (rc == 0) {
        rc = print_event(inv, event, status, err);
    }
    arena_free(arena);
    return rc;
}

static int print_stream(const struct invocation *inv, int *status, struct error *err)
{
    _cleanup_buf_ struct buf in = BUF_INIT(EVENT_MAX);
    for (;;) {
        char *to = buf_reserve(&in, READ_SIZE);
        if (to == NULL)
            return buf_check(&in, "an event", err);
        ssize_t n = client_read(inv->client, to, READ_SIZE, err);
        if (n <= 0)
            return (int)n;
        buf_commit(&in, (size_t)n);
        size_t used = 0;
        for (const char *end; (end = memchr(in.data + used, '\n', in.len - used)) != NULL;) {
            struct slice line = {in.data + used, (size_t)(end - in.data) - used};
            if (print_line(inv, line, status, err) < 0)
                return -1;
            used += line.len + 1;
        }
        buf_consume(&in, used);
    }
}

/* --- running --- */

int code_run_shown(const struct invocation *inv, struct slice code, const char *language,
                   int *status, struct error *err)
{
    const struct {
        const char *key, *value;
    } words[] = {{"language", args_option(inv->args, "language", language)},
                 {"context", args_option(inv->args, "context", NULL)}};
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    struct http_answer answer;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = client_body(inv->client, &root);
    yyjson_mut_obj_add_strn(doc, root, "code", code.data, code.len);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (words[i].value != NULL)
            yyjson_mut_obj_add_str(doc, root, words[i].key, words[i].value);
    if (args_number(inv->args, "timeout", 0) > 0)
        yyjson_mut_obj_add_uint(doc, root, "timeout", args_number(inv->args, "timeout", 0));
    client_add_env(inv->client, inv->args, doc, root, "env");
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/code");
    if (client_stream(inv->client, "POST", &target, doc, "application/x-ndjson", &answer, err) < 0)
        return -1;
    return print_stream(inv, status, err);
}

static int read_all(int fd, struct buf *out, struct error *err)
{
    for (;;) {
        char *to = buf_reserve(out, READ_SIZE);
        if (to == NULL)
            return buf_check(out, "the code", err);
        ssize_t n = read(fd, to, READ_SIZE);
        if (n < 0)
            return error_sys(err, "reading the code");
        if (n == 0)
            return 0;
        buf_commit(out, (size_t)n);
    }
}

/* By the end of its name, unless it is said otherwise; NULL: as if nothing was said. */
static const char *language_of(const struct invocation *inv, const char *file)
{
    static const struct {
        const char *end, *language;
    } rows[] = {{".py", "python"},      {".js", "javascript"}, {".mjs", "javascript"},
                {".cjs", "javascript"}, {".ts", "typescript"}, {".mts", "typescript"},
                {".sh", "bash"},        {".bash", "bash"},     {".r", "r"},
                {".java", "java"},      {".jsh", "java"}};
    const char *end = strrchr(file, '.');
    if (end == NULL || args_option(inv->args, "context", NULL) != NULL)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcasecmp(end, rows[i].end) == 0)
            return rows[i].language;
    return NULL;
}

int verb_code_run(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf code = BUF_INIT(CODE_SOURCE_MAX + READ_SIZE);
    const char *given = args_word(inv->args, "CODE");
    const char *file = args_option(inv->args, "from-file", NULL);
    _cleanup_fd_ int opened = -1;
    if (given != NULL && file != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "the code is given twice: as a word and with --from-file");
    if (given != NULL && strcmp(given, "-") != 0)
        return code_run_shown(inv, slice_of(given), NULL, ret_status, err);
    if (file != NULL && strcmp(file, "-") != 0) {
        opened = open(file, O_RDONLY | O_CLOEXEC);
        if (opened < 0)
            return error_sys(err, "opening %s", file);
    }
    if (read_all(opened >= 0 ? opened : STDIN_FILENO, &code, err) < 0)
        return -1;
    return code_run_shown(inv, (struct slice){code.data, code.len},
                          file == NULL ? NULL : language_of(inv, file), ret_status, err);
}
