/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files are read by root, so that secrets in them (keys for HS256) can be root's alone; "jwksFile"
 * becomes "jwks" on the way, "jwksCaFile" "jwksCa". What is wrong is told here, before anything is
 * started.
 */

#include "main/jwt_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "auth/issuers.h"
#include "auth/seal.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "json/json.h"

static int read_file(const char *path, struct buf *text, struct error *err)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char piece[4096];
    ssize_t n = fd < 0 ? -1 : 0;
    while (fd >= 0 && !text->failed && (n = read(fd, piece, sizeof(piece))) > 0)
        buf_add(text, piece, (size_t)n);
    explicit_bzero(piece, sizeof(piece));
    if (n < 0)
        return error_sys(err, "reading %s", path);
    return buf_check(text, path, err);
}

/* The set that "jwksFile" of an issuer names, in its place. */
static int inline_file(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *issuer,
                       struct error *err)
{
    yyjson_mut_val *name = yyjson_mut_obj_remove_key(issuer, "jwksFile");
    _cleanup_wipe_ struct buf text = BUF_INIT(JWKS_MAX);
    yyjson_val *root;
    if (name == NULL)
        return 0;
    if (!yyjson_mut_is_str(name) || yyjson_mut_obj_get(issuer, "jwks") != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "jwksFile is no text, or stands beside a jwks");
    if (read_file(yyjson_mut_get_str(name), &text, err) < 0)
        return -1;
    if (json_parse(arena, (struct slice){text.data, text.len}, &root, err) < 0)
        return error_prefix(err, "%s", yyjson_mut_get_str(name));
    yyjson_mut_obj_add_val(doc, issuer, "jwks", yyjson_val_mut_copy(doc, root));
    return 0;
}

/* The same for "jwksCaFile", whose text becomes "jwksCa". */
static int inline_authorities(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *issuer,
                              struct error *err)
{
    yyjson_mut_val *name = yyjson_mut_obj_remove_key(issuer, "jwksCaFile");
    _cleanup_buf_ struct buf text = BUF_INIT(JWKS_MAX);
    if (name == NULL)
        return 0;
    if (!yyjson_mut_is_str(name) || yyjson_mut_obj_get(issuer, "jwksCa") != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "jwksCaFile is no text, or stands beside a jwksCa");
    if (read_file(yyjson_mut_get_str(name), &text, err) < 0)
        return -1;
    const char *pem = arena_dup(arena, text.len > 0 ? text.data : "", text.len);
    yyjson_mut_obj_add_strn(doc, issuer, "jwksCa", pem, text.len);
    return 0;
}

static int bundle(const char *path, struct arena *arena, struct slice *ret_text, struct error *err)
{
    _cleanup_wipe_ struct buf text = BUF_INIT(JWKS_MAX);
    yyjson_val *root;
    yyjson_mut_val *issuer;
    size_t i, count;
    if (read_file(path, &text, err) < 0 ||
        json_parse(arena, (struct slice){text.data, text.len}, &root, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, root));
    yyjson_mut_val *list = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "issuers");
    yyjson_mut_arr_foreach(list, i, count, issuer)
    {
        if (yyjson_mut_is_obj(issuer) && (inline_file(arena, doc, issuer, err) < 0 ||
                                          inline_authorities(arena, doc, issuer, err) < 0))
            return -1;
    }
    struct slice whole = json_write(arena, doc, false);
    if (whole.len > JWT_CONFIG_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "it is too large");
    if (issuers_check(whole, err) < 0)
        return -1;
    *ret_text = whole;
    return 0;
}

static bool holds(int fd, struct slice text)
{
    off_t size = lseek(fd, 0, SEEK_END);
    if (size != (off_t)text.len)
        return false;
    if (size == 0)
        return true;
    void *now = mmap(NULL, text.len, PROT_READ, MAP_SHARED, fd, 0);
    if (now == MAP_FAILED)
        return false;
    bool same = memcmp(now, text.data, text.len) == 0;
    munmap(now, text.len);
    return same;
}

int jwt_files_renew(const char *path, int fd, struct error *err)
{
    if (path == NULL)
        return 0;
    struct arena *arena = arena_new();
    struct slice text = {NULL, 0};
    int rc = bundle(path, arena, &text, err);
    if (rc < 0)
        error_prefix(err, "--jwt-config %s", path);
    else if (!holds(fd, text)) {
        rc = 1;
        if (ftruncate(fd, 0) < 0 || pwrite(fd, text.data, text.len, 0) != (ssize_t)text.len)
            rc = error_sys(err, "keeping whose tokens are trusted");
    }
    arena_free(arena);
    return rc;
}

int jwt_files_open(const char *path, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int fd = memfd_create("jwt", MFD_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "keeping whose tokens are trusted");
    if (jwt_files_renew(path, fd, err) < 0)
        return -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}
