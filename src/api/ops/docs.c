/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The API described by itself: api/openapi.yaml as JSON, and a page of it for people. Both are in
 * the program, so that they are never those of another version, and both are for everybody: they
 * say what any copy of the program would. The page has nothing from elsewhere and nothing inline,
 * and its policy says so: a key is typed into it.
 */

#include <string.h>

#include "api/handlers.h"
#include "base/cleanup.h"
#include "docs_css.h"
#include "docs_html.h"
#include "docs_js.h"
#include "openapi_json.h"

#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct document {
    const char *name, *type;
    const unsigned char *bytes;
    size_t len;
};

static const struct document page = {"", "text/html; charset=utf-8", docs_html, sizeof(docs_html)};
static const struct document openapi = {"", "application/json", openapi_json, sizeof(openapi_json)};

/* What the page is made of, below /docs/. */
static const struct document parts[] = {
    {"docs.js", "text/javascript; charset=utf-8", docs_js, sizeof(docs_js)},
    {"docs.css", "text/css; charset=utf-8", docs_css, sizeof(docs_css)},
};

static int reply(struct http_exchange *x, const struct document *document, struct error *err)
{
    http_set_header(x, "Content-Security-Policy", POLICY);
    http_set_header(x, "Referrer-Policy", "no-referrer");
    http_set_header(x, "X-Content-Type-Options", "nosniff");
    http_set_header(x, "Cache-Control", "no-cache");
    return http_reply(x, 200, document->type, document->bytes, document->len, err);
}

int ops_openapi(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    return reply(x, &openapi, err);
}

int ops_docs(struct http_exchange *x, const struct route_params *params, void *ctx,
             struct error *err)
{
    return reply(x, &page, err);
}

int ops_docs_part(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const char *name = route_param(params, "file");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strcmp(parts[i].name, name) == 0)
            return reply(x, &parts[i], err);
    return error_set(err, ERROR_ROUTE_NOT_FOUND, "the page of the API has no part \"%.100s\"",
                     name);
}
