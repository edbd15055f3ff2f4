/* SPDX-License-Identifier: Apache-2.0 */

/* Ports, to those who asked to be told of them. */

#include "api/port_callback.h"

#include <inttypes.h>
#include <stdio.h>

#include "http/webhook.h"

int port_callback_deliver(void *ctx, const struct port_event *event, struct error *err)
{
    const char *quote = event->shape == PORT_CALLBACK_TEXT ? "\"" : "";
    char json[96];
    int len = snprintf(json, sizeof(json), "{\"pid\":%s%" PRIu64 "%s,\"port\":%u}", quote,
                       event->pid, quote, event->port);
    return webhook_post(ctx, event->callback, (struct slice){json, (size_t)len}, err);
}
