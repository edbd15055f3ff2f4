/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kubernetes quantities: "500m", "0.5", "2" for cpu (into thousandths of a core), "512Mi", "1Gi",
 * "1e9", "1500M", "64Ki", "1.5Gi" or plain bytes for memory and disk. Fractions of a thousandth or
 * of a byte round up, as Kubernetes does. INVALID_QUANTITY names the text and shows a right one;
 * negative values, empty text, unknown units and what does not fit into 63 bits are all refused.
 */

#include <stdint.h>

#include "base/error.h"

int quantity_cpu(const char *text, uint64_t *ret_millis, struct error *err);
int quantity_bytes(const char *text, uint64_t *ret_bytes, struct error *err);
