/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Webhooks by libcurl. The library is loaded when the first one is needed: it brings some thirty
 * others along, which would cost every start of every program more than all the rest, for something
 * that most servers never do.
 */

#include "http/webhook.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "http/address_policy.h"
#include "loop/co.h"
#include "loop/work.h"
#include "observe/span.h"
#include "observe/trace_context.h"

enum {
    THREADS = 4,
    URL_MAX = 2048,
    CONNECT_TIMEOUT_MS = 5 * 1000,
    TIMEOUT_MS = 10 * 1000,
    ANSWER_MAX = 64 * 1024, /* what a receiver may say; nobody reads it */
    LOAD_WAIT_MS = 60 * 1000,
};

/* What is used of the library. */
struct curl {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *handle, CURLoption option, ...);
    CURLcode (*easy_perform)(CURL *handle);
    CURLcode (*easy_getinfo)(CURL *handle, CURLINFO info, ...);
    void (*easy_cleanup)(CURL *handle);
    const char *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
    CURLU *(*url)(void);
    void (*url_cleanup)(CURLU *url);
    CURLUcode (*url_set)(CURLU *url, CURLUPart part, const char *text, unsigned flags);
    CURLUcode (*url_get)(const CURLU *url, CURLUPart part, char **text, unsigned flags);
    void (*free)(void *text);
};

struct webhook {
    struct loop *loop;
    struct workers *workers;
    bool allow_private;
    atomic_bool stopped;
    bool loaded, loading;
    struct co_cond load_ended;
    void *library;
    struct curl curl;
};

/* --- loading --- */

struct load {
    struct webhook *webhook;
    struct error err;
    int rc;
};

static int find_functions(struct webhook *w, struct error *err)
{
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = {
        {"curl_global_init", offsetof(struct curl, global_init)},
        {"curl_easy_init", offsetof(struct curl, easy_init)},
        {"curl_easy_setopt", offsetof(struct curl, easy_setopt)},
        {"curl_easy_perform", offsetof(struct curl, easy_perform)},
        {"curl_easy_getinfo", offsetof(struct curl, easy_getinfo)},
        {"curl_easy_cleanup", offsetof(struct curl, easy_cleanup)},
        {"curl_easy_strerror", offsetof(struct curl, easy_strerror)},
        {"curl_slist_append", offsetof(struct curl, slist_append)},
        {"curl_slist_free_all", offsetof(struct curl, slist_free_all)},
        {"curl_url", offsetof(struct curl, url)},
        {"curl_url_cleanup", offsetof(struct curl, url_cleanup)},
        {"curl_url_set", offsetof(struct curl, url_set)},
        {"curl_url_get", offsetof(struct curl, url_get)},
        {"curl_free", offsetof(struct curl, free)},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        void *function = dlsym(w->library, rows[i].name);
        if (function == NULL)
            return error_set(err, ERROR_UNAVAILABLE, "libcurl has no %s", rows[i].name);
        memcpy((char *)&w->curl + rows[i].offset, &function, sizeof(function));
    }
    return 0;
}

static void load_run(void *arg)
{
    struct load *load = arg;
    struct webhook *w = load->webhook;
    if (w->library == NULL)
        w->library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (w->library == NULL) {
        const char *why = dlerror();
        load->rc = error_set(&load->err, ERROR_UNAVAILABLE,
                             "callbacks need libcurl (Debian: libcurl4): %.200s", why);
        return;
    }
    load->rc = find_functions(w, &load->err);
    if (load->rc == 0 && w->curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        load->rc = error_set(&load->err, ERROR_UNAVAILABLE, "libcurl does not start");
}

static int make_loaded(struct webhook *w, struct error *err)
{
    while (w->loading)
        if (co_cond_wait(w->loop, &w->load_ended, LOAD_WAIT_MS, err) < 0)
            return -1;
    if (w->loaded)
        return 0;
    struct load load = {.webhook = w};
    w->loading = true;
    workers_run(w->workers, load_run, &load);
    w->loading = false;
    w->loaded = load.rc == 0;
    co_cond_wake_all(&w->load_ended);
    if (load.rc < 0)
        *err = load.err;
    return load.rc;
}

struct webhook *webhook_new(struct loop *loop, bool allow_private, struct error *err)
{
    struct webhook *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        error_sys(err, "preparing callbacks");
        return NULL;
    }
    w->loop = loop;
    w->allow_private = allow_private;
    w->workers = workers_new(loop, THREADS, err);
    if (w->workers == NULL) {
        free(w);
        return NULL;
    }
    return w;
}

void webhook_stop(struct webhook *w)
{
    if (w == NULL)
        return;
    atomic_store(&w->stopped, true);
}

void webhook_free(struct webhook *w)
{
    if (w == NULL)
        return;
    webhook_stop(w);
    workers_free(w->workers);
    /* The library stays: what it has registered with others cannot be undone reliably. */
    free(w);
}

/* --- looking at a URL --- */

struct check {
    struct webhook *webhook;
    const char *text;
    CURLU *url;
    char *result;
    struct error err;
    int rc;
};

static int refused(struct error *err, const char *host)
{
    return error_set(err, ERROR_CALLBACK_REFUSED,
                     "callback: %.200s is no public address; only a server that was started with "
                     "--allow-private-callbacks calls it",
                     host);
}

/* An address that is written out, and the one name that always means this machine. Other names are
 * judged when they are called. */
static int check_host(const struct webhook *w, char *host, struct error *err)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } address = {.any = {.sa_family = AF_UNSPEC}};
    size_t len = strlen(host);
    if (len == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "callback: the URL has no host");
    if (w->allow_private)
        return 0;
    if (host[len - 1] == '.')
        host[--len] = '\0';
    if (strcasecmp(host, "localhost") == 0 ||
        (len > 10 && strcasecmp(host + len - 10, ".localhost") == 0))
        return refused(err, host);
    if (host[0] == '[') {
        host[len - 1] = '\0';
        host[strcspn(host, "%")] = '\0';
        address.any.sa_family = AF_INET6;
        if (inet_pton(AF_INET6, host + 1, &address.in6.sin6_addr) != 1)
            return refused(err, host + 1);
    } else if (inet_pton(AF_INET, host, &address.in.sin_addr) == 1) {
        address.any.sa_family = AF_INET;
    } else {
        return 0;
    }
    return address_is_public(&address.any) && !address_is_ours(&address.any)
               ? 0
               : refused(err, host[0] == '[' ? host + 1 : host);
}

static int check_parts(struct check *check, struct error *err)
{
    const struct curl *curl = &check->webhook->curl;
    char *scheme = NULL, *host = NULL, *user = NULL, *password = NULL, *whole = NULL;
    int rc = 0;
    if (curl->url_set(check->url, CURLUPART_URL, check->text, CURLU_NON_SUPPORT_SCHEME) !=
            CURLUE_OK ||
        curl->url_get(check->url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        rc = error_set(err, ERROR_INVALID_ARGUMENT, "callback: \"%.100s\" is no http or https URL",
                       check->text);
    else if (curl->url_get(check->url, CURLUPART_USER, &user, 0) == CURLUE_OK ||
             curl->url_get(check->url, CURLUPART_PASSWORD, &password, 0) == CURLUE_OK)
        rc = error_set(err, ERROR_INVALID_ARGUMENT,
                       "callback: a user or password in the URL is not allowed");
    else if (curl->url_get(check->url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        rc = error_set(err, ERROR_INVALID_ARGUMENT, "callback: the URL has no host");
    else
        rc = check_host(check->webhook, host, err);
    if (rc == 0 && curl->url_get(check->url, CURLUPART_URL, &whole, 0) == CURLUE_OK)
        check->result = strdup(whole);
    if (rc == 0 && check->result == NULL)
        rc = error_set(err, ERROR_INTERNAL, "out of memory");
    char *all[] = {scheme, host, user, password, whole};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        curl->free(all[i]);
    return rc;
}

static void check_run(void *arg)
{
    struct check *check = arg;
    check->url = check->webhook->curl.url();
    if (check->url == NULL) {
        check->rc = error_set(&check->err, ERROR_INTERNAL, "out of memory");
        return;
    }
    check->rc = check_parts(check, &check->err);
    check->webhook->curl.url_cleanup(check->url);
}

int webhook_check(struct webhook *w, const char *url, char **ret_url, struct error *err)
{
    if (strlen(url) > URL_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "callback: the URL is longer than %d bytes",
                         URL_MAX);
    if (make_loaded(w, err) < 0)
        return -1;
    struct check check = {.webhook = w, .text = url};
    workers_run(w->workers, check_run, &check);
    if (check.rc < 0) {
        *err = check.err;
        return -1;
    }
    *ret_url = check.result;
    return 0;
}

/* --- calling it --- */

struct post {
    struct webhook *webhook;
    const struct webhook_call *call;
    long status;
    size_t answered;
    bool refused;
    struct error err;
    int rc;
};

/* The last word on whom to call: libcurl asks for each address that it is about to connect to. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct post *post = arg;
    if (!post->webhook->allow_private &&
        (!address_is_public(&address->addr) || address_is_ours(&address->addr))) {
        post->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t drop_answer(char *data, size_t size, size_t count, void *arg)
{
    struct post *post = arg;
    post->answered += size * count;
    return post->answered > ANSWER_MAX ? 0 : size * count;
}

static int go_on(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct post *post = arg;
    return atomic_load(&post->webhook->stopped) ? 1 : 0;
}

static void set_options(struct post *post, CURL *handle, struct curl_slist *headers)
{
    const struct curl *curl = &post->webhook->curl;
    int64_t timeout = post->call->timeout_ms > 0 ? post->call->timeout_ms : TIMEOUT_MS;
    curl->easy_setopt(handle, CURLOPT_URL, post->call->url);
    curl->easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(handle, CURLOPT_PROXY, "");
    curl->easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(handle, CURLOPT_USERAGENT, "cella/" CELLA_VERSION);
    curl->easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    curl->easy_setopt(handle, CURLOPT_POSTFIELDS, post->call->body.data);
    curl->easy_setopt(handle, CURLOPT_POSTFIELDSIZE, (long)post->call->body.len);
    curl->easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl->easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)timeout);
    curl->easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl->easy_setopt(handle, CURLOPT_OPENSOCKETDATA, post);
    curl->easy_setopt(handle, CURLOPT_WRITEFUNCTION, drop_answer);
    curl->easy_setopt(handle, CURLOPT_WRITEDATA, post);
    curl->easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl->easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, go_on);
    curl->easy_setopt(handle, CURLOPT_XFERINFODATA, post);
}

static int judge(struct post *post, CURL *handle, CURLcode code)
{
    const struct curl *curl = &post->webhook->curl;
    long status = 0;
    curl->easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    post->status = status;
    /* An answer that is too long is one all the same. */
    if (code == CURLE_WRITE_ERROR && post->answered > ANSWER_MAX)
        code = CURLE_OK;
    if (code == CURLE_OK && status >= 200 && status < 300)
        return 0;
    if (code == CURLE_OK)
        return error_set(&post->err, ERROR_UNAVAILABLE, "the receiver answers with status %ld",
                         status);
    if (post->refused)
        return error_set(&post->err, ERROR_CALLBACK_REFUSED,
                         "the callback's name leads to no public address");
    return error_set(&post->err,
                     code == CURLE_OPERATION_TIMEDOUT ? ERROR_TIMEOUT : ERROR_UNAVAILABLE, "%s",
                     curl->easy_strerror(code));
}

/* NULL when there is no memory for all of them. */
static struct curl_slist *make_headers(const struct post *post)
{
    const struct curl *curl = &post->webhook->curl;
    char type[128];
    snprintf(type, sizeof(type), "Content-Type: %s", post->call->content_type);
    struct curl_slist *headers = curl->slist_append(NULL, type);
    strv_each (line, post->call->headers) {
        struct curl_slist *longer = headers == NULL ? NULL : curl->slist_append(headers, line);
        if (longer == NULL) {
            curl->slist_free_all(headers);
            return NULL;
        }
        headers = longer;
    }
    return headers;
}

static void post_run(void *arg)
{
    struct post *post = arg;
    const struct curl *curl = &post->webhook->curl;
    CURL *handle = curl->easy_init();
    struct curl_slist *headers = make_headers(post);
    if (handle == NULL || headers == NULL) {
        post->rc = error_set(&post->err, ERROR_UNAVAILABLE, "out of memory");
    } else {
        set_options(post, handle, headers);
        post->rc = judge(post, handle, curl->easy_perform(handle));
    }
    curl->easy_cleanup(handle);
    curl->slist_free_all(headers);
}

/* --- fetching --- */

struct fetch {
    struct webhook *webhook;
    const struct webhook_get *get;
    struct buf body;
    struct error err;
    int rc;
};

static size_t keep_answer(char *data, size_t size, size_t count, void *arg)
{
    struct fetch *fetch = arg;
    buf_add(&fetch->body, data, size * count);
    return fetch->body.failed ? 0 : size * count;
}

static int fetch_goes_on(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct fetch *fetch = arg;
    return atomic_load(&fetch->webhook->stopped) ? 1 : 0;
}

static void set_fetch_options(struct fetch *fetch, CURL *handle)
{
    const struct curl *curl = &fetch->webhook->curl;
    curl->easy_setopt(handle, CURLOPT_URL, fetch->get->url);
    curl->easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(handle, CURLOPT_PROXY, "");
    curl->easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(handle, CURLOPT_USERAGENT, "cella/" CELLA_VERSION);
    curl->easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl->easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    curl->easy_setopt(handle, CURLOPT_WRITEFUNCTION, keep_answer);
    curl->easy_setopt(handle, CURLOPT_WRITEDATA, fetch);
    curl->easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl->easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, fetch_goes_on);
    curl->easy_setopt(handle, CURLOPT_XFERINFODATA, fetch);
}

/* Every kernel has it, it has been empty for decades, and nobody can put something there. Where it
 * is missing nothing is found there, either. */
#define EMPTY_FOLDER "/proc/tty/ldisc"

/* Set before a name is looked up: a library that does not know the option must not fall back to
 * whoever the machine believes. */
static CURLcode set_authorities(struct fetch *fetch, CURL *handle)
{
    const struct curl *curl = &fetch->webhook->curl;
    const char *pem = fetch->get->authorities;
    if (pem == NULL)
        return CURLE_OK;
    struct curl_blob blob = {.data = (void *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    CURLcode code = curl->easy_setopt(handle, CURLOPT_CAINFO_BLOB, &blob);
    /* The folder of the machine's own would be looked into as well. It is not enough to name none,
     * which newer libraries may take for the one that they were built with. */
    return code == CURLE_OK ? curl->easy_setopt(handle, CURLOPT_CAPATH, EMPTY_FOLDER) : code;
}

static void fetch_run(void *arg)
{
    struct fetch *fetch = arg;
    const struct curl *curl = &fetch->webhook->curl;
    CURL *handle = curl->easy_init();
    long status = 0;
    if (handle == NULL) {
        fetch->rc = error_set(&fetch->err, ERROR_UNAVAILABLE, "out of memory");
        return;
    }
    set_fetch_options(fetch, handle);
    CURLcode code = set_authorities(fetch, handle);
    if (code == CURLE_OK)
        code = curl->easy_perform(handle);
    curl->easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    curl->easy_cleanup(handle);
    if (fetch->body.failed)
        fetch->rc = error_set(&fetch->err, ERROR_PAYLOAD_TOO_LARGE, "the answer is too large");
    else if (code != CURLE_OK)
        fetch->rc = error_set(&fetch->err,
                              code == CURLE_OPERATION_TIMEDOUT ? ERROR_TIMEOUT : ERROR_UNAVAILABLE,
                              "%s", curl->easy_strerror(code));
    else if (status != 200)
        fetch->rc =
            error_set(&fetch->err, ERROR_UNAVAILABLE, "the answer has the status %ld", status);
}

int webhook_fetch(struct webhook *w, const struct webhook_get *get, char **ret_body,
                  size_t *ret_len, struct error *err)
{
    if (make_loaded(w, err) < 0)
        return -1;
    struct fetch fetch = {.webhook = w, .get = get, .body = BUF_INIT(get->max)};
    workers_run(w->workers, fetch_run, &fetch);
    if (fetch.rc < 0) {
        buf_release(&fetch.body);
        *err = fetch.err;
        return -1;
    }
    *ret_len = fetch.body.len;
    *ret_body = buf_steal(&fetch.body);
    return *ret_body != NULL ? 0 : error_sys(err, "keeping an answer");
}

int webhook_send(struct webhook *w, const struct webhook_call *call, int *ret_status,
                 struct error *err)
{
    if (ret_status != NULL)
        *ret_status = 0;
    if (make_loaded(w, err) < 0)
        return -1;
    struct post post = {.webhook = w, .call = call};
    workers_run(w->workers, post_run, &post);
    if (ret_status != NULL)
        *ret_status = (int)post.status;
    if (post.rc < 0)
        *err = post.err;
    return post.rc;
}

/* "traceparent: …" and "tracestate: …" of whoever is worked for. */
static struct slice trace_headers(const struct errand *errand, char *out, size_t size)
{
    char parent[TRACEPARENT_LEN + 1];
    if (errand == NULL || !errand->traced)
        return (struct slice){0};
    trace_parent_text(errand, parent);
    size_t len = (size_t)snprintf(out, size, "traceparent: %s", parent) + 1;
    if (errand->tracestate_len > 0)
        len += (size_t)snprintf(out + len, size - len, "tracestate: %s", errand->tracestate) + 1;
    return (struct slice){out, len};
}

int webhook_post(struct webhook *w, const char *url, struct slice json, struct error *err)
{
    char headers[TRACESTATE_MAX + TRACEPARENT_LEN + 64];
    struct errand *errand = co_errand(w->loop);
    struct span span;
    uint64_t begun = meter_now();
    span_begin(errand, &span, "callback");
    const struct webhook_call call = {.url = url,
                                      .content_type = "application/json",
                                      .body = json,
                                      .headers = trace_headers(errand, headers, sizeof(headers))};
    int rc = webhook_send(w, &call, NULL, err);
    meter_took(loop_meters(w->loop), METER_CALL_CALLBACK, begun);
    span_end(errand, &span, SPAN_CLIENT, rc < 0 ? err : NULL, NULL, 0);
    return rc;
}
