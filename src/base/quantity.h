/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kubernetes quantities: "500m", "0.5", "2" for cpu (into thousandths of a core), "512Mi", "1Gi",
 * "1e9", "1500M", "64Ki", "1.5Gi" or plain bytes for memory and disk. Fractions of a thousandth or
 * of a byte round up, as Kubernetes does. INVALID_QUANTITY names the text and shows a right one;
 * negative values, empty text, unknown units and what does not fit into 63 bits are all refused.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

int quantity_cpu(const char *text, uint64_t *ret_millis, struct error *err);
int quantity_bytes(const char *text, uint64_t *ret_bytes, struct error *err);
/* A plain number: "100", "2k". */
int quantity_count(const char *text, uint64_t *ret_count, struct error *err);

/* "25%", "12.5%" of `whole`, at most all of it; fractions of one round down, so that the parts of a
 * whole never add up to more. */
bool quantity_is_share(const char *text);
int quantity_share(const char *text, uint64_t whole, uint64_t *ret_part, struct error *err);
