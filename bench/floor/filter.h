/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The seccomp allow-list, compiled once: an allow-list like Docker's default. */

#include <linux/filter.h>

#include "base/error.h"

/* ret_filter->filter is to be freed. */
int filter_build(struct sock_fprog *ret_filter, struct error *err);
