/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella secret …`: what is sent for sandboxes and never into them. A value is never an argument:
 * those are for everybody to see who looks at the processes of the machine, and stay in histories.
 */

#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"

static int call(struct invocation *inv, const char *method, const char *name, yyjson_mut_doc *body,
                yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/secrets");
    if (name != NULL) {
        buf_addc(&target, '/');
        target_add(&target, name, false);
    }
    return client_json(inv->client, method, &target, body, 0, ret_root, err);
}

/* --- showing --- */

static void hosts_cell(struct table *table, yyjson_val *secret)
{
    _cleanup_buf_ struct buf text = BUF_INIT(SECRET_HOSTS_MAX * 256);
    yyjson_val *host;
    size_t i, count;
    yyjson_arr_foreach(yyjson_obj_get(secret, "hosts"), i, count, host)
    {
        struct slice name = client_text(host, "");
        buf_addf(&text, "%s%.*s", i > 0 ? "," : "", (int)name.len, name.data);
    }
    table_cell(table, (struct slice){text.data, text.len});
}

static void add_row(struct table *table, yyjson_val *secret)
{
    table_cell(table, client_text(secret, "/name"));
    hosts_cell(table, secret);
    table_cell(table, client_text(secret, "/updatedAt"));
    table_cell(table, client_text(secret, "/updatedBy"));
}

static struct table *secret_table(void)
{
    static const char *const titles[] = {"NAME", "HOSTS", "UPDATED", "BY"};
    return table_new(titles, ARRAY_LEN(titles));
}

int verb_secret_list(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "GET", NULL, NULL, &root, err) < 0)
        return -1;
    return output_list(inv->json, root, "secrets", secret_table(), add_row, err);
}

/* --- storing --- */

static int read_all(int fd, struct buf *out, struct error *err)
{
    for (;;) {
        char *at = buf_reserve(out, 1024);
        if (at == NULL)
            return buf_check(out, "the value", err);
        ssize_t n = read(fd, at, 1024);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, "reading the value");
        if (n == 0)
            return 0;
        buf_commit(out, (size_t)n);
    }
}

/* A line from the terminal, without showing it. */
static int ask(const char *name, struct buf *out, struct error *err)
{
    struct termios before, quiet;
    char line[SECRET_VALUE_MAX + 2];
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return error_sys(err, "asking for the value");
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    fprintf(stderr, "Value of %s: ", name);
    const char *got = fgets(line, sizeof(line), stdin);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fputc('\n', stderr);
    if (got != NULL)
        buf_adds(out, line);
    explicit_bzero(line, sizeof(line));
    return 0;
}

static int read_value(const struct invocation *inv, struct buf *out, struct error *err)
{
    const char *path = args_option(inv->args, "from-file", "-");
    _cleanup_fd_ int fd = -1;
    if (strcmp(path, "-") != 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return error_sys(err, "opening %s", path);
    }
    int r = fd < 0 && isatty(STDIN_FILENO) ? ask(args_word(inv->args, "SECRET"), out, err)
                                           : read_all(fd < 0 ? STDIN_FILENO : fd, out, err);
    if (r < 0)
        return -1;
    if (out->len > 0 && out->data[out->len - 1] == '\n')
        out->data[--out->len] = '\0';
    if (out->len > 0 && out->data[out->len - 1] == '\r')
        out->data[--out->len] = '\0';
    if (out->len == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "no value was given: type it, pipe it in, or use --from-file");
    return 0;
}

int verb_secret_set(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf value = BUF_INIT(2 * SECRET_VALUE_MAX);
    const struct args *args = inv->args;
    yyjson_mut_val *object, *hosts = NULL;
    yyjson_mut_doc *body = client_body(inv->client, &object);
    yyjson_val *root;
    if (args_flag(args, "keep-value") && args_option(args, "from-file", NULL) != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--keep-value and --from-file exclude one "
                         "another");
    if (!args_flag(args, "keep-value")) {
        if (read_value(inv, &value, err) < 0)
            return -1;
        yyjson_mut_obj_add_strncpy(body, object, "value", value.data, value.len);
    }
    for (size_t i = 0; i < args->option_count; i++) {
        if (strcmp(args->options[i].row->name, "host") != 0)
            continue;
        if (hosts == NULL)
            hosts = yyjson_mut_obj_add_arr(body, object, "hosts");
        yyjson_mut_arr_add_str(body, hosts, args->options[i].value);
    }
    if (call(inv, "PUT", args_word(args, "SECRET"), body, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = secret_table();
    add_row(table, root);
    return output_table(table, err);
}

int verb_secret_delete(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "DELETE", args_word(inv->args, "SECRET"), NULL, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    text_add_plain(&out, client_text(root, "/message"));
    buf_addc(&out, '\n');
    return output_buf(&out, err);
}

/* --- a sandbox's authority --- */

int verb_secret_trust(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX), out = BUF_INIT(OUTPUT_MAX);
    const bool remove = args_flag(inv->args, "remove");
    yyjson_val *root;
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/network/ca");
    if (client_json(inv->client, remove ? "DELETE" : "PUT", &target, NULL, 0, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    struct slice message = client_text(root, "/message");
    if (message.len > 0)
        fprintf(stderr,
                "cella: the certificate is not in the sandbox's files as it should be: %.*s\n",
                (int)message.len, message.data);
    struct slice certificate = client_text(root, "/certificate");
    buf_add(&out, certificate.data, certificate.len);
    return output_buf(&out, err);
}
