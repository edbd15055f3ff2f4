/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An authority is made once: its key first, then its certificate, so that there is never a
 * certificate that people trust and nobody can sign for. The server's own certificate lies in one
 * file with its key, so that both change in one step.
 */

#include "main/tls_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "auth/seal.h"
#include "auth/server_certificate.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "http/tls.h"

/* --- which names it is for --- */

/* "http://host:1/", "host:1", "[::1]:1" → the host. */
static void add_host_of(struct server_names *names, const char *text)
{
    const char *scheme = strstr(text, "://");
    const char *host = scheme == NULL ? text : scheme + 3;
    size_t len = host[0] == '[' ? strcspn(++host, "]") : strcspn(host, ":/");
    static const char *const any[] = {"0.0.0.0", "::"};
    for (size_t i = 0; i < ARRAY_LEN(any); i++)
        if (strlen(any[i]) == len && strncmp(any[i], host, len) == 0)
            return;
    server_names_add(names, host, len);
}

static void collect_names(const struct server_options *options, struct server_names *names)
{
    static const char *const always[] = {"localhost", "127.0.0.1", "::1"};
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        server_names_add(names, always[i], strlen(always[i]));
    char text[SERVER_NAME_SIZE];
    if (gethostname(text, sizeof(text) - 1) == 0) {
        text[sizeof(text) - 1] = '\0';
        server_names_add(names, text, strlen(text));
    }
    add_host_of(names, options->listen);
    if (options->public_url != NULL)
        add_host_of(names, options->public_url);
    if (strcmp(options->domain, "off") == 0)
        return;
    server_names_add(names, options->domain, strlen(options->domain));
    snprintf(text, sizeof(text), "*.%s", options->domain);
    server_names_add(names, text, strlen(text));
}

/* --- a certificate of our own --- */

static int make_authority(const struct datadir *dir, struct buf *certificate, struct buf *key,
                          struct error *err)
{
    char name[64], host[64] = "";
    gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "Cella %.40s %.12s", host, dir->instance);
    buf_clear(key);
    if (server_authority_make(name, certificate, key, err) < 0 ||
        datadir_write(dir, LAYOUT_TLS_CA_KEY, key->data, 0600, err) < 0)
        return -1;
    return datadir_write(dir, LAYOUT_TLS_CA, certificate->data, 0644, err);
}

static int own_certificate(const struct datadir *dir, const struct server_options *options,
                           struct buf *pem, struct error *err)
{
    struct server_names names = {0};
    _cleanup_buf_ struct buf authority = BUF_INIT(TLS_PEM_MAX);
    _cleanup_wipe_ struct buf key = BUF_INIT(TLS_PEM_MAX);
    collect_names(options, &names);
    if (datadir_read(dir, LAYOUT_TLS_CA, &authority, err) < 0 ||
        datadir_read(dir, LAYOUT_TLS_CA_KEY, &key, err) < 0 ||
        datadir_read(dir, LAYOUT_TLS_SERVER, pem, err) < 0)
        return -1;
    if (authority.len == 0 && make_authority(dir, &authority, &key, err) < 0)
        return -1;
    if (pem->len > 0 && server_certificate_fits(pem->data, authority.data, &names))
        return 0;
    buf_clear(pem);
    if (server_certificate_make(authority.data, key.len > 0 ? key.data : "", &names, pem, err) < 0)
        return error_prefix(err, "%s/%s and %s (put the right one back, or remove both)", dir->path,
                            LAYOUT_TLS_CA, LAYOUT_TLS_CA_KEY);
    return datadir_write(dir, LAYOUT_TLS_SERVER, pem->data, 0600, err);
}

/* --- files that were given --- */

static int add_file(const char *option, const char *path, struct buf *pem, struct error *err)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char piece[4096];
    ssize_t n = fd < 0 ? -1 : 0;
    while (fd >= 0 && !pem->failed && (n = read(fd, piece, sizeof(piece))) > 0)
        buf_add(pem, piece, (size_t)n);
    explicit_bzero(piece, sizeof(piece));
    if (n < 0)
        return error_sys(err, "%s: reading %s", option, path);
    buf_addc(pem, '\n');
    return buf_check(pem, path, err);
}

static int given_certificate(const struct server_options *options, struct buf *pem,
                             struct error *err)
{
    struct tls_context *context = NULL;
    if (options->tls_cert == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--tls-key needs --tls-cert");
    if (add_file("--tls-cert", options->tls_cert, pem, err) < 0 ||
        (options->tls_key != NULL && add_file("--tls-key", options->tls_key, pem, err) < 0))
        return -1;
    /* Told here, before anything is started. */
    if (tls_context_server((struct slice){pem->data, pem->len}, &context, err) < 0)
        return error_prefix(err, "--tls-cert %s", options->tls_cert);
    tls_context_free(context);
    return 0;
}

/* --- the file for who serves --- */

static bool holds(int fd, const struct buf *pem)
{
    _cleanup_wipe_ struct buf now = BUF_INIT(TLS_PEM_MAX);
    char piece[4096];
    ssize_t n;
    while (!now.failed && (n = pread(fd, piece, sizeof(piece), (off_t)now.len)) > 0)
        buf_add(&now, piece, (size_t)n);
    explicit_bzero(piece, sizeof(piece));
    return !now.failed && now.len == pem->len &&
           (pem->len == 0 || memcmp(now.data, pem->data, pem->len) == 0);
}

int tls_files_renew(const struct datadir *dir, const struct server_options *options, int fd,
                    struct error *err)
{
    _cleanup_wipe_ struct buf pem = BUF_INIT(TLS_PEM_MAX);
    bool given = options->tls_cert != NULL || options->tls_key != NULL;
    if (strcmp(options->tls, "off") != 0 && (given ? given_certificate(options, &pem, err)
                                                   : own_certificate(dir, options, &pem, err)) < 0)
        return -1;
    if (holds(fd, &pem))
        return 0;
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pem.data, pem.len, 0) != (ssize_t)pem.len)
        return error_sys(err, "keeping the TLS certificate");
    return 1;
}

int tls_files_open(const struct datadir *dir, const struct server_options *options, int *ret_fd,
                   struct error *err)
{
    _cleanup_fd_ int fd = memfd_create("tls", MFD_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "keeping the TLS certificate");
    if (tls_files_renew(dir, options, fd, err) < 0)
        return -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}
