/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The server of a data folder, found by the unix socket in it (DIR/run/api.sock).
 *
 * Anybody can take a TCP port of this machine once its server is gone. Nobody can take the socket:
 * only the owner of DIR/run can create one there, and that owner has to be root or the caller. So
 * the key in a data folder is sent over this socket and nowhere else.
 */

#include "base/error.h"

enum { LOCAL_URL_MAX = 512, LOCAL_ADDRESS_MAX = 64 };

struct local_server {
    char url[LOCAL_URL_MAX];         /* that the server wrote down; "": it is still starting */
    char address[LOCAL_ADDRESS_MAX]; /* of its socket, as net_connect() takes it. It names a
                                        descriptor that stays open until the process ends */
};

/* UNAVAILABLE: no server runs with this folder (local_server_missing()). PERMISSION_DENIED: the
 * caller may not look, or others could have created the socket. The socket of a server that was
 * killed is found, and refuses connections. */
int local_server_find(const char *data, struct local_server *ret_server, struct error *err);

/* Sets the error that no server runs with this folder, and how to start one. */
int local_server_missing(const char *data, struct error *err);
