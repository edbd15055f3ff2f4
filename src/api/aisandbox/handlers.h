/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers that the rows of aisandbox/routes.c name. Their ctx is a struct api_call. */

#include "http/router.h"

/* sandbox.c */
route_handler aisandbox_create, aisandbox_get, aisandbox_delete;

/* exec.c */
route_handler aisandbox_exec, aisandbox_ws;

/* history.c */
route_handler aisandbox_history, aisandbox_diff, aisandbox_rollback;
