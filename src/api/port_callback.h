/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a monitor's callback receives: {"pid", "port"}, as the facade that started it writes a pid.
 */

#include "sandbox/monitors.h"

enum port_callback_shape {
    PORT_CALLBACK_NUMBER = 0, /* {"pid": 1234, "port": 8080} */
    PORT_CALLBACK_TEXT = 1,   /* {"pid": "1234", "port": 8080} */
};

/* ctx is the struct webhook. */
port_delivery port_callback_deliver;
