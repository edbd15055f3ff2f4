/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where traces and figures are sent: the environment variables that OpenTelemetry has agreed on
 * (https://opentelemetry.io/docs/specs/otel/protocol/exporter/), and the server's own options,
 * which come first. Headers, which hold keys, are taken from the environment alone: command lines
 * are for everybody to read.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct export_settings {
    char *traces, *metrics;   /* addresses; NULL: not sent */
    struct buf trace_headers; /* "Name: value" strings, each with its NUL */
    struct buf metric_headers;
    bool traces_json, metrics_json; /* http/json, and not http/protobuf */
    struct buf resource;            /* "service.name=cella" …, likewise */
    double ratio;
    int64_t traces_ms, metrics_ms; /* between two sends */
};

/* endpoint, ratio: the options; "": not given. instance: what tells this server from others, the
 * same after a restart. environ_get: getenv(), or a test's. A variable that makes no sense is
 * INVALID_ARGUMENT, and names itself. */
int export_settings_read(struct export_settings *settings, const char *endpoint, const char *ratio,
                         const char *instance, char *(*environ_get)(const char *name),
                         struct error *err);
void export_settings_release(struct export_settings *settings);
