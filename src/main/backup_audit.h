/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The audit log's part of a backup: a copy of its files, and of the head that is kept in another
 * place, which `cella audit verify` finds whole while the log itself is being written to.
 */

#include "base/error.h"

/* From the data folder into the folder for copies, which has the database's already. */
int backup_audit(int data_fd, int stage_fd, struct error *err);
