/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the server and the key, so that on the server's own machine no command needs an option.
 */

#include "cli/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "cli/config.h"
#include "cli/local_server.h"

const char *settings_data(const struct args *args)
{
    const char *data = args_option(args, "data", getenv("CELLA_DATA"));
    return data == NULL || data[0] == '\0' ? DEFAULT_DATA_DIR : data;
}

int settings_read(const char *data, const char *name, char *out, size_t size, struct error *err)
{
    char path[SETTINGS_PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", data, name) >= (int)sizeof(path))
        return error_set(err, ERROR_INVALID_PATH, "the path of the data folder is too long");
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_sys(err, "%s", path);
    ssize_t len = read(fd, out, size - 1);
    if (len < 0)
        return error_sys(err, "%s", path);
    out[len] = '\0';
    while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == '\r'))
        out[--len] = '\0';
    return 0;
}

/* --- the address --- */

static bool is_numeric(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* A name's first address as a number. */
static int look_up(char *host, size_t size, struct error *err)
{
    if (is_numeric(host) || strcmp(host, "localhost") == 0)
        return 0;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int status = getaddrinfo(host, NULL, &hints, &found);
    if (status != 0)
        return error_set(err, ERROR_UNAVAILABLE, "cannot find the host %s: %s", host,
                         gai_strerror(status));
    status = getnameinfo(found->ai_addr, found->ai_addrlen, host, (socklen_t)size, NULL, 0,
                         NI_NUMERICHOST);
    freeaddrinfo(found);
    if (status != 0)
        return error_set(err, ERROR_UNAVAILABLE, "cannot find the host: %s", gai_strerror(status));
    return 0;
}

static int bad_url(const char *url, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "\"%s\" is no URL of a server: it looks like http://HOST:PORT or "
                     "https://HOST:PORT",
                     url);
}

/* Parts "HOST", "HOST:PORT" and "[v6]:PORT". *ret_port: what it is unless it is there. */
static int split_authority(const char *authority, size_t len, char *host, size_t size,
                           const char **ret_port, size_t *ret_port_len)
{
    const char *end = authority + len, *host_end, *port;
    if (authority[0] == '[') {
        authority++;
        host_end = memchr(authority, ']', (size_t)(end - authority));
        port = host_end == NULL ? NULL : host_end + 1;
    } else {
        host_end = memchr(authority, ':', len);
        port = host_end = host_end == NULL ? end : host_end;
    }
    if (host_end == NULL || host_end == authority || (size_t)(host_end - authority) >= size ||
        (port != end && (*port != ':' || port + 1 == end)))
        return -1;
    memcpy(host, authority, (size_t)(host_end - authority));
    host[host_end - authority] = '\0';
    *ret_port = port == end ? *ret_port : port + 1;
    *ret_port_len = port == end ? strlen(*ret_port) : (size_t)(end - port - 1);
    return strspn(*ret_port, "0123456789") >= *ret_port_len ? 0 : -1;
}

int settings_set_url(struct settings *s, const char *url, struct error *err)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    if (len >= URL_MAX)
        return bad_url(url, err);
    snprintf(s->url, sizeof(s->url), "%.*s", (int)len, url);
    if (strncmp(s->url, "unix:/", 6) == 0) {
        memcpy(s->address, s->url, len + 1);
        snprintf(s->host, sizeof(s->host), "localhost");
        return 0;
    }
    s->tls = strncmp(s->url, "https://", 8) == 0;
    size_t scheme = s->tls ? 8 : 7;
    if ((!s->tls && strncmp(s->url, "http://", 7) != 0) ||
        strpbrk(s->url + scheme, "/?#@ ") != NULL)
        return bad_url(url, err);

    char host[URL_MAX];
    const char *port = s->tls ? "443" : "80";
    size_t port_len;
    if (split_authority(s->url + scheme, len - scheme, host, sizeof(host), &port, &port_len) < 0)
        return bad_url(url, err);
    snprintf(s->host, sizeof(s->host), "%s", s->url + scheme);
    snprintf(s->tls_name, sizeof(s->tls_name), "%s", host);
    if (look_up(host, sizeof(host), err) < 0)
        return -1;
    bool v6 = strchr(host, ':') != NULL;
    if (snprintf(s->address, sizeof(s->address), "%s%s%s:%.*s", v6 ? "[" : "", host, v6 ? "]" : "",
                 (int)port_len, port) >= (int)sizeof(s->address))
        return bad_url(url, err);
    return 0;
}

/* --- what was given --- */

static const char *first_set(const char *a, const char *b, const char *c)
{
    const char *const all[] = {a, b, c};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i] != NULL && all[i][0] != '\0')
            return all[i];
    return NULL;
}

static const char *variable(const char *ours, const char *theirs)
{
    return first_set(getenv(ours), getenv(theirs), NULL);
}

/* BL_API_URL is that of the control plane: ".../v0". */
static const char *blaxel_url(char out[URL_MAX])
{
    const char *url = getenv("BL_API_URL");
    size_t len = url == NULL ? 0 : strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    if (len > 3 && strncmp(url + len - 3, "/v0", 3) == 0)
        len -= 3;
    if (len == 0 || len >= URL_MAX)
        return NULL;
    snprintf(out, URL_MAX, "%.*s", (int)len, url);
    return out;
}

/* A key that was given by hand, or by `cella login` for this very URL. "" in s->key: there is none.
 */
static int find_given_key(const struct args *args, const struct config *config, struct settings *s,
                          struct error *err)
{
    const char *key = first_set(args_option(args, "api-key", NULL),
                                variable("CELLA_API_KEY", "BL_API_KEY"), NULL);
    bool logged_in = config->found && strcmp(config->url, s->url) == 0;
    if (key != NULL && (strlen(key) >= KEY_MAX || strpbrk(key, "\r\n") != NULL))
        return error_set(err, ERROR_INVALID_ARGUMENT, "the API key cannot be right: %s",
                         strlen(key) >= KEY_MAX ? "too long" : "it holds a line break");
    if (key == NULL && logged_in)
        key = first_set(config->key, NULL, NULL);
    if (key != NULL)
        memcpy(s->key, key, strlen(key) + 1);
    return 0;
}

/* It becomes part of a field: the server says what it thinks of the rest. */
static int find_workspace(const struct args *args, const struct config *config, struct settings *s,
                          struct error *err)
{
    bool logged_in = config->found && strcmp(config->url, s->url) == 0;
    const char *name =
        first_set(args_option(args, "workspace", NULL), variable("CELLA_WORKSPACE", "BL_WORKSPACE"),
                  logged_in ? config->workspace : NULL);
    if (name == NULL)
        return 0;
    if (strlen(name) >= sizeof(s->workspace_text) || strpbrk(name, "\r\n") != NULL)
        return error_set(err, ERROR_INVALID_NAME, "\"%.63s\" is no name of a workspace", name);
    memcpy(s->workspace_text, name, strlen(name) + 1);
    return 0;
}

/* The one that was named; NULL: none was. Room is for what has to be changed. */
static const char *named_url(const struct args *args, char room[URL_MAX])
{
    /* A folder named on the command line says more than a URL left in the environment. */
    const char *on_line = first_set(args_option(args, "url", NULL), args_word(args, "URL"), NULL);
    if (on_line != NULL || args_flag(args, "data"))
        return on_line;
    return first_set(getenv("CELLA_URL"), blaxel_url(room), NULL);
}

/* --- the data folder's own server --- */

/* Goes to the server by its socket, whatever its URL is. */
static void use_socket(struct settings *s, const struct local_server *server)
{
    snprintf(s->address, sizeof(s->address), "%s", server->address);
    s->tls = false;
    s->local = true;
}

/* The URL that messages and the Host field say: addresses in answers are made of it, so it has to
 * be the one that others can use. */
static int take_local_url(struct settings *s, const struct local_server *server, struct error *err)
{
    if (server->url[0] != '\0')
        return settings_set_url(s, server->url, err);
    snprintf(s->url, sizeof(s->url), "unix:%.400s/%s", s->data, LAYOUT_API_SOCK);
    snprintf(s->host, sizeof(s->host), "localhost");
    return 0;
}

static void read_folder_key(struct settings *s)
{
    struct error why;
    if (settings_read(s->data, LAYOUT_API_KEY, s->key, sizeof(s->key), &why) < 0)
        snprintf(s->key_problem, sizeof(s->key_problem), "cannot read the key in %s", why.message);
}

/* Whether two addresses are the same one; "localhost" is 127.0.0.1 here. */
static bool same_address(const char *a, const char *b)
{
    static const char name[] = "localhost:", number[] = "127.0.0.1:";
    bool a_is_name = strncmp(a, name, sizeof(name) - 1) == 0,
         b_is_name = strncmp(b, name, sizeof(name) - 1) == 0;
    if (a_is_name == b_is_name)
        return strcmp(a, b) == 0;
    const char *named = (a_is_name ? a : b) + sizeof(name) - 1, *other = a_is_name ? b : a;
    return strncmp(other, number, sizeof(number) - 1) == 0 &&
           strcmp(other + sizeof(number) - 1, named) == 0;
}

/* Whether the address that was given is the one that this folder's server wrote down, or is its
 * socket. */
static bool names_local(const struct settings *s, const struct local_server *server)
{
    struct settings own = {.data = s->data};
    char socket_url[SETTINGS_PATH_MAX];
    snprintf(socket_url, sizeof(socket_url), "unix:%.4000s/%s", s->data, LAYOUT_API_SOCK);
    if (strcmp(s->url, socket_url) == 0)
        return true;
    return settings_set_url(&own, server->url, NULL) == 0 && same_address(own.address, s->address);
}

/* An address was given, and no key: the folder's key is used if its server is meant. */
static void try_folder_key(struct settings *s)
{
    struct local_server server;
    char path[SETTINGS_PATH_MAX];
    if (local_server_find(s->data, &server, NULL) == 0 && names_local(s, &server)) {
        read_folder_key(s);
        if (s->key[0] != '\0')
            use_socket(s, &server);
        return;
    }
    snprintf(path, sizeof(path), "%.4000s/%s", s->data, LAYOUT_API_KEY);
    if (access(path, F_OK) < 0)
        snprintf(s->key_problem, sizeof(s->key_problem), "no key was given for %.200s", s->url);
    else
        snprintf(s->key_problem, sizeof(s->key_problem),
                 "no key was given for %.120s, and the one in %.120s is only sent to the server "
                 "that runs there",
                 s->url, path);
}

/* Without a server this is no error yet: what is wrong with the command line is said first. */
static int find_local_server(const struct args *args, const struct config *config,
                             struct settings *s, struct error *err)
{
    struct local_server server;
    if (local_server_find(s->data, &server, &s->no_server) < 0)
        return 0;
    if (take_local_url(s, &server, err) < 0 || find_given_key(args, config, s, err) < 0)
        return -1;
    use_socket(s, &server);
    if (s->key[0] == '\0')
        read_folder_key(s);
    return 0;
}

static int find_server(const struct args *args, const struct config *config, struct settings *s,
                       struct error *err)
{
    char room[URL_MAX];
    const char *url = named_url(args, room);
    if (url == NULL && config->found)
        url = config->url;
    if (url == NULL)
        return find_local_server(args, config, s, err);
    if (settings_set_url(s, url, err) < 0 || find_given_key(args, config, s, err) < 0)
        return -1;
    /* `cella login` keeps what it finds for that address: it asks instead. */
    if (s->key[0] == '\0' && args_word(args, "URL") == NULL)
        try_folder_key(s);
    return 0;
}

int settings_find(const struct args *args, struct settings *ret_settings, struct error *err)
{
    struct settings s = {.data = settings_data(args)};
    struct config config = {.found = false};
    bool data_named =
        args_flag(args, "data") || first_set(getenv("CELLA_DATA"), NULL, NULL) != NULL;
    /* Who logs in is not held up by what an earlier login has left. */
    if (!data_named && args_word(args, "URL") == NULL && config_load(&config, err) < 0)
        return -1;
    if (find_server(args, &config, &s, err) < 0 || find_workspace(args, &config, &s, err) < 0)
        return -1;
    *ret_settings = s;
    if (s.workspace_text[0] != '\0')
        ret_settings->workspace = ret_settings->workspace_text;
    return 0;
}
