/* SPDX-License-Identifier: Apache-2.0 */

/* GET /metrics: the server's figures for Prometheus. */

#include "api/call.h"
#include "api/handlers.h"
#include "api/observed.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "observe/exposition.h"

int ops_metrics(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    const struct api_call *call = ctx;
    _cleanup_buf_ struct buf out = BUF_INIT(METRICS_TEXT_MAX);
    struct exposition exposition;
    bool open = exposition_wants_openmetrics(http_header(x, "Accept"));
    exposition_begin(&exposition, &out, open);
    observed_tell(call->api, &exposition.sink);
    exposition_end(&exposition);
    if (buf_check(&out, "the list of figures", err) < 0)
        return -1;
    http_set_header(x, "Cache-Control", "no-store");
    return http_reply(x, 200, open ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT, out.data, out.len,
                      err);
}
