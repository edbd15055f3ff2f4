/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the server is and which key opens it.
 *
 *   URL        --url, CELLA_URL, BL_API_URL, `cella login`; else the unix socket in DIR
 *   key        --api-key, CELLA_API_KEY, BL_API_KEY, `cella login`, DIR/api-key
 *   workspace  --workspace, CELLA_WORKSPACE, BL_WORKSPACE, `cella login`
 *   DIR        --data, CELLA_DATA, /var/lib/cella
 *
 * A key from a file is sent only to the server that it is for: the one of `cella login` to the URL
 * that was logged in to, the one in DIR over DIR's own socket (cli/local_server.h), even when the
 * server was named by its URL. --data on the command line counts more than CELLA_URL, and a folder
 * that was named counts more than `cella login`.
 */

#include <stdbool.h>

#include "base/error.h"
#include "cli/args.h"

enum { URL_MAX = 512, KEY_MAX = 2048 + 1, SETTINGS_PATH_MAX = 4096 };

struct settings {
    char url[URL_MAX];                   /* for messages */
    char address[URL_MAX];               /* as net_connect() takes it */
    char host[URL_MAX];                  /* for the Host field */
    bool tls;                            /* https */
    bool local;                          /* address is the socket in the data folder */
    char tls_name[URL_MAX];              /* that the certificate has to be for */
    struct error no_server;              /* code set: none is running, and nothing else is set */
    char key[KEY_MAX];                   /* "": none was found */
    char key_problem[ERROR_MESSAGE_MAX]; /* why not; "" when there is one */
    const char *data;                    /* borrowed */
    const char *workspace;               /* NULL: the key's own. Borrowed, or workspace_text */
    char workspace_text[64];
};

int settings_find(const struct args *args, struct settings *ret_settings, struct error *err);

/* The data folder alone. */
const char *settings_data(const struct args *args);

/* Takes "http://HOST:PORT", "https://…" or "unix:/path" apart into s->url, address and host. A name
 * is looked up here, because what connects knows numbers only. */
int settings_set_url(struct settings *s, const char *url, struct error *err);

/* The first bytes of a file below the data folder, without the line break at its end. */
int settings_read(const char *data, const char *name, char *out, size_t size, struct error *err);
