/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Labels and the other words on a sandbox that mean something to its clients only.
 *
 * A label's key is Kubernetes' kind: a name of 1 to 63 letters, digits, '-', '_' and '.', that
 * begins and ends with a letter or digit, and before it, if wanted, a DNS name and a slash
 * ("example.com/team"). Its value is any text of one line, up to LABEL_VALUE_MAX bytes.
 */

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "sandbox/sandbox.h"

/* INVALID_ARGUMENT says what is wrong and what would be right. */
int metadata_check(const struct sandbox_metadata *metadata, struct error *err);
int metadata_check_labels(struct slice labels, struct error *err);

/* Whether all of `wanted` are among `labels`, with these values. */
bool metadata_has_labels(struct slice labels, struct slice wanted);

/* A copy on the heap, for metadata_release(). "" counts as none. -1: out of memory, with nothing
 * to release. */
int metadata_copy(const struct sandbox_metadata *from, struct sandbox_metadata *ret_copy);
void metadata_release(struct sandbox_metadata *metadata);
