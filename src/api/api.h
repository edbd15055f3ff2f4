/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The public HTTP API: every route, and every JSON shape that a client sees. It sits on the domain
 * (sandbox/) and knows nothing of how a sandbox is made; nothing below knows its shapes.
 */

#include <stdbool.h>

#include "auth/auth.h"
#include "base/error.h"
#include "code/code.h"
#include "http/server.h"
#include "http/webhook.h"
#include "loop/loop.h"
#include "sandbox/sandbox.h"

struct limits;
struct proxies;
struct live_calls;
struct recorder;
struct connect_watchers;
struct signed_hints;
struct memory_return;

/* All borrowed: they live at least as long as the server that uses the API. */
struct api {
    struct loop *loop;
    struct sandboxes *sandboxes;
    struct code *code;
    struct webhook *webhook;
    struct auth *auth;
    struct live_calls *live;
    struct memory_return *memory_return; /* NULL: freed memory stays with malloc() */
    struct limits *limits;
    struct recorder *recorder;
    struct workers *searchers; /* who look through the audit log */
    struct connect_watchers *watchers;
    struct signed_hints *signed_hints;
    const char *public_url; /* "https://cella.example"; NULL: as the request's Host field says */
    /* Pages that may read answers: "*", or "https://app.example, …"; NULL: only the API's own. */
    const char *cors_origin;
    bool open; /* nobody is asked for a key */
    /* {port}-{sandbox id}.{domain} leads to that port: "sandboxes.example"; NULL: no name does. */
    const char *domain;
    const char *host_address;   /* where ports of the host are: "127.0.0.1" */
    struct http_server *server; /* that it is served by; NULL: not yet */
    int64_t started_ms;         /* Unix time */
    bool metrics_open;          /* /metrics needs no key */
    bool access_log;            /* a line for each request */
    bool draining;              /* it is to end: nothing new should come here */
    struct proxies *proxies;    /* that stand for others: api/forwarded.h */
};

/* Serves one request. ctx is the struct api. */
http_handler api_handle;
/* The same at the address for the server's figures alone (api/ops/figures_door.c). */
http_handler api_handle_figures;
/* A request has failed with this: counts it, logs it, and sets what its answer has beside the
 * error. For those who serve requests otherwise than by api_handle(). */
void api_failed(struct http_exchange *x, const struct api *api, struct error *err);
