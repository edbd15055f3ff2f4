/* SPDX-License-Identifier: Apache-2.0 */

/* Variables, each with its rule. */

#include "export/settings.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum {
    HEADERS_MAX = 8 * 1024,
    RESOURCE_MAX = 4 * 1024,
    URL_MAX = 2000,
    TRACES_MS = 5000,
    METRICS_MS = 60 * 1000,
    INTERVAL_MAX_MS = 3600 * 1000,
};

typedef char *environ_getter(const char *name);

/* "" and unset are the same, as the specification has it. */
static const char *value_of(environ_getter *get, const char *name)
{
    const char *value = get(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

static int check_url(const char *name, const char *url, struct error *err)
{
    bool http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    if (!http || strlen(url) > URL_MAX || strpbrk(url, " \t\r\n") != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: \"%.100s\" is not an address such as http://127.0.0.1:4318", name,
                         url);
    return 0;
}

/* The signal's own address as it is, or the common one with the signal's path. */
static int choose_url(environ_getter *get, const char *option, const char *own_name,
                      const char *path, char **ret_url, struct error *err)
{
    const char *own = value_of(get, own_name);
    const char *common = value_of(get, "OTEL_EXPORTER_OTLP_ENDPOINT");
    const char *name = "OTEL_EXPORTER_OTLP_ENDPOINT";
    struct buf url = BUF_INIT(URL_MAX + 32);
    if (option[0] != '\0') {
        common = option;
        name = "--otlp-endpoint";
        own = NULL;
    }
    if (own == NULL && common == NULL)
        return 0;
    if (check_url(own != NULL ? own_name : name, own != NULL ? own : common, err) < 0)
        return -1;
    buf_adds(&url, own != NULL ? own : common);
    while (own == NULL && url.len > 0 && url.data[url.len - 1] == '/')
        url.data[--url.len] = '\0';
    if (own == NULL)
        buf_adds(&url, path);
    *ret_url = buf_steal(&url);
    return 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decoded; what could end a header line is no part of one. */
static bool add_decoded(struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '%' && i + 2 < len && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
            c = (unsigned char)(hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]));
            i += 2;
        }
        if (c < 0x20 || c == 0x7f)
            return false;
        buf_addc(out, (char)c);
    }
    return true;
}

/* The next pair of "key=value,key2=value2"; false behind the last one. What is no pair has no key.
 * *text is moved on. */
struct pair {
    const char *key, *value;
    size_t key_len, value_len;
};

static bool next_pair(const char **text, struct pair *ret_pair)
{
    if (*text == NULL)
        return false;
    const char *at = *text + strspn(*text, " \t,");
    size_t len = strcspn(at, ",");
    *text = at + len;
    while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
        len--;
    if (len == 0)
        return false;
    const char *equals = memchr(at, '=', len);
    size_t key_len = equals == NULL ? 0 : (size_t)(equals - at);
    *ret_pair = (struct pair){.key = at, .key_len = key_len};
    if (key_len > 0) {
        ret_pair->value = equals + 1;
        ret_pair->value_len = len - key_len - 1;
    }
    return true;
}

static bool has_key(const struct pair *pair, const char *key)
{
    return pair->key_len == strlen(key) && memcmp(pair->key, key, pair->key_len) == 0;
}

/* As strings of key, between and value; but for those of the key `without` (NULL: all). */
static int add_pairs(struct buf *out, const char *name, const char *text, const char *between,
                     const char *without, struct error *err)
{
    struct pair pair;
    while (next_pair(&text, &pair)) {
        if (pair.key_len == 0)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s: not a list of key=value", name);
        if (without != NULL && has_key(&pair, without))
            continue;
        bool right = add_decoded(out, pair.key, pair.key_len);
        buf_adds(out, between);
        right = right && add_decoded(out, pair.value, pair.value_len);
        buf_addc(out, '\0');
        if (!right)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s: a control character", name);
    }
    return buf_check(out, name, err);
}

static int read_headers(environ_getter *get, const char *own_name, struct buf *out,
                        struct error *err)
{
    const char *common = "OTEL_EXPORTER_OTLP_HEADERS";
    const char *name = value_of(get, own_name) != NULL ? own_name : common;
    return add_pairs(out, name, value_of(get, name), ": ", NULL, err);
}

/* gRPC is none of those that are spoken here. */
static int read_protocol(environ_getter *get, const char *own_name, bool *ret_json,
                         struct error *err)
{
    const char *common = "OTEL_EXPORTER_OTLP_PROTOCOL";
    const char *name = value_of(get, own_name) != NULL ? own_name : common;
    const char *protocol = value_of(get, name);
    *ret_json = protocol != NULL && strcmp(protocol, "http/json") == 0;
    if (protocol != NULL && !*ret_json && strcmp(protocol, "http/protobuf") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: \"%.40s\" is neither http/protobuf nor http/json", name, protocol);
    return 0;
}

static int read_interval(environ_getter *get, const char *name, int64_t *ms, struct error *err)
{
    const char *text = value_of(get, name);
    char *end;
    if (text == NULL)
        return 0;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0' || value < 100 || value > INTERVAL_MAX_MS)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: \"%.40s\" is not a number of milliseconds from 100 to %d", name, text,
                         INTERVAL_MAX_MS);
    *ms = value;
    return 0;
}

static int read_ratio(environ_getter *get, const char *option, double *ratio, struct error *err)
{
    const char *text = option[0] != '\0' ? option : value_of(get, "OTEL_TRACES_SAMPLER_ARG");
    const char *name = option[0] != '\0' ? "--trace-ratio" : "OTEL_TRACES_SAMPLER_ARG";
    char *end;
    if (text == NULL)
        return 0;
    double value = strtod(text, &end);
    if (*end != '\0' || !(value >= 0 && value <= 1))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: \"%.40s\" is not a number from 0 to 1",
                         name, text);
    *ratio = value;
    return 0;
}

static bool lists(const char *list, const char *key)
{
    struct pair pair;
    while (next_pair(&list, &pair))
        if (has_key(&pair, key))
            return true;
    return false;
}

/* What nobody has said is said of the server by itself. service.name has a variable of its own,
 * which counts more than the list. */
static int read_resource(environ_getter *get, const char *instance, struct buf *out,
                         struct error *err)
{
    const char *service = value_of(get, "OTEL_SERVICE_NAME");
    const char *list = value_of(get, "OTEL_RESOURCE_ATTRIBUTES");
    const struct {
        const char *key, *value;
    } own[] = {{"service.name", service != NULL ? service : "cella"},
               {"service.version", CELLA_VERSION},
               {"service.instance.id", instance}};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        bool chosen = i == 0 && service != NULL;
        if (own[i].value[0] == '\0' || (!chosen && lists(list, own[i].key)))
            continue;
        buf_adds(out, own[i].key);
        buf_addc(out, '=');
        buf_adds(out, own[i].value);
        buf_addc(out, '\0');
    }
    return add_pairs(out, "OTEL_RESOURCE_ATTRIBUTES", list, "=",
                     service != NULL ? "service.name" : NULL, err);
}

static bool is_none(environ_getter *get, const char *name)
{
    const char *value = value_of(get, name);
    return value != NULL && strcmp(value, "none") == 0;
}

int export_settings_read(struct export_settings *s, const char *endpoint, const char *ratio,
                         const char *instance, environ_getter *get, struct error *err)
{
    *s = (struct export_settings){.trace_headers = BUF_INIT(HEADERS_MAX),
                                  .metric_headers = BUF_INIT(HEADERS_MAX),
                                  .resource = BUF_INIT(RESOURCE_MAX),
                                  .ratio = 1,
                                  .traces_ms = TRACES_MS,
                                  .metrics_ms = METRICS_MS};
    const char *disabled = value_of(get, "OTEL_SDK_DISABLED");
    if (disabled != NULL && strcasecmp(disabled, "true") == 0)
        return 0;
    if ((!is_none(get, "OTEL_TRACES_EXPORTER") &&
         choose_url(get, endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/v1/traces", &s->traces,
                    err) < 0) ||
        (!is_none(get, "OTEL_METRICS_EXPORTER") &&
         choose_url(get, endpoint, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "/v1/metrics",
                    &s->metrics, err) < 0) ||
        read_headers(get, "OTEL_EXPORTER_OTLP_TRACES_HEADERS", &s->trace_headers, err) < 0 ||
        read_headers(get, "OTEL_EXPORTER_OTLP_METRICS_HEADERS", &s->metric_headers, err) < 0 ||
        read_protocol(get, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", &s->traces_json, err) < 0 ||
        read_protocol(get, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", &s->metrics_json, err) < 0 ||
        read_interval(get, "OTEL_BSP_SCHEDULE_DELAY", &s->traces_ms, err) < 0 ||
        read_interval(get, "OTEL_METRIC_EXPORT_INTERVAL", &s->metrics_ms, err) < 0 ||
        read_ratio(get, ratio, &s->ratio, err) < 0 ||
        read_resource(get, instance, &s->resource, err) < 0) {
        export_settings_release(s);
        return -1;
    }
    return 0;
}

void export_settings_release(struct export_settings *s)
{
    free(s->traces);
    free(s->metrics);
    s->traces = s->metrics = NULL;
    if (s->trace_headers.data != NULL)
        buf_release(&s->trace_headers);
    if (s->metric_headers.data != NULL)
        buf_release(&s->metric_headers);
    if (s->resource.data != NULL)
        buf_release(&s->resource);
}
