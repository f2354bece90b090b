/* A controller in C, written from docs/protocol.md alone: moves every actuator of a plant as a slow sine.
 *
 *   gcc -std=c11 -Wall -Wextra -Werror -O2 client.c -o client -lzmq -lmsgpackc -lm     (libzmq3-dev, libmsgpack-dev)
 *   ./client [ENDPOINT [STEPS]]                                                        tcp://127.0.0.1:9870, no end
 *
 * Exit status: 0 done, stopped (Ctrl-C, SIGTERM: it sends bye), or the plant sent bye;
 * 1 the plant refused the client, closed, or never answered; 2 wrong arguments.
 */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <msgpack.h>
#include <zmq.h>

enum { MAX_ACTUATORS = 64, NAME = 128, PATIENCE_MS = 10000, HELLO_AGAIN_MS = 2000, POLL_MS = 500 };

typedef struct {
    char name[NAME];
    double neutral, swing; /* it moves between neutral - swing and neutral + swing */
} Actuator;

typedef struct {
    char identity[16], step_endpoint[256], robot[NAME], mode[16];
    double dt;
    int actuators;
    Actuator actuator[MAX_ACTUATORS];
} Welcome;

static volatile sig_atomic_t stopped;

static void stop(int number) {
    (void)number;
    stopped = 1; /* a blocking call returns; a second signal ends the program at once */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

static void die(int status, const char *format, ...) {
    va_list more;
    va_start(more, format);
    fputs("client: ", stderr);
    vfprintf(stderr, format, more);
    fputc('\n', stderr);
    va_end(more);
    exit(status);
}

/* -- reading maps: unknown fields are ignored ----------------------------------------------------- */

static const msgpack_object *field(const msgpack_object *map, const char *key) {
    if (map == NULL || map->type != MSGPACK_OBJECT_MAP) return NULL;
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object *name = &map->via.map.ptr[i].key;
        if (name->type == MSGPACK_OBJECT_STR && name->via.str.size == strlen(key) &&
            memcmp(name->via.str.ptr, key, name->via.str.size) == 0)
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

/* A number, which may be an integer or either float; otherwise (nil, missing) the default. */
static double number(const msgpack_object *value, double otherwise) {
    if (value == NULL) return otherwise;
    switch (value->type) {
    case MSGPACK_OBJECT_POSITIVE_INTEGER: return (double)value->via.u64;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: return (double)value->via.i64;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: return value->via.f64;
    default: return otherwise;
    }
}

static int64_t integer(const msgpack_object *value, int64_t otherwise) {
    if (value == NULL) return otherwise;
    if (value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 <= INT64_MAX) return (int64_t)value->via.u64;
    return value->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? value->via.i64 : otherwise;
}

static bool text(const msgpack_object *value, char *out, size_t room) {
    out[0] = '\0';
    if (value == NULL || value->type != MSGPACK_OBJECT_STR || value->via.str.size >= room) return false;
    memcpy(out, value->via.str.ptr, value->via.str.size);
    out[value->via.str.size] = '\0';
    return true;
}

static bool is(const msgpack_object *message, const char *type) {
    char content[32];
    return text(field(message, "type"), content, sizeof content) && strcmp(content, type) == 0;
}

/* -- writing ------------------------------------------------------------------------------------------------------ */

static void put_text(msgpack_packer *to, const char *text) {
    msgpack_pack_str(to, strlen(text));
    msgpack_pack_str_body(to, text, strlen(text));
}

static void put_field(msgpack_packer *to, const char *key, const char *value) {
    put_text(to, key);
    put_text(to, value);
}

/* -- the session's token ------------------------------------------------------------------------------------------ */

static uint32_t crc32_of(const char *text) {
    uint32_t crc = 0xffffffffu;
    for (; *text; text++) {
        crc ^= (unsigned char)*text;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static bool is_plain(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.';
}

/* Empty if no file exists: the plant uses keys, runs as another user, or does not run. */
static void read_token(const char *endpoint, char *token, size_t room) {
    char plain[512], path[1024];
    size_t n = 0;
    for (const char *c = endpoint; *c && n + 1 < sizeof plain; c++)
        if (is_plain(*c)) plain[n++] = *c;
        else if (n == 0 || plain[n - 1] != '_') plain[n++] = '_';
    plain[n] = '\0';
    const char *name = n > 80 ? plain + n - 80 : plain, *directory = getenv("XDG_RUNTIME_DIR");
    char fallback[64];
    if (directory == NULL || *directory == '\0') {
        snprintf(fallback, sizeof fallback, "/run/user/%ld", (long)getuid());
        if (access(fallback, F_OK) != 0) snprintf(fallback, sizeof fallback, "/tmp/runtime-%ld", (long)getuid());
        directory = fallback;
    }
    snprintf(path, sizeof path, "%s/rtmms/%s.%08x.token", directory, name, crc32_of(endpoint));
    token[0] = '\0';
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    if (fgets(token, (int)room, file) == NULL) token[0] = '\0';
    token[strcspn(token, "\n")] = '\0';
    fclose(file);
}

/* -- the protocol ------------------------------------------------------------------------------------------------- */

/* Receive the next message; false after wait_ms (-1: no limit). The next call with `into` and `unpacked` overwrites it.
 * monitor: socket that receives an event when the plant closes its connection; NULL for none */
static bool receive(void *socket, void *monitor, int wait_ms, zmq_msg_t *into, msgpack_unpacked *unpacked) {
    zmq_pollitem_t items[] = {{socket, 0, ZMQ_POLLIN, 0}, {monitor, 0, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, monitor ? 2 : 1, wait_ms) <= 0) return false;
    if (!(items[0].revents & ZMQ_POLLIN)) die(1, "the plant is gone: its connection closed without a bye");
    if (zmq_msg_recv(into, socket, ZMQ_DONTWAIT) < 0) return false;
    size_t at = 0;
    msgpack_unpacked_destroy(unpacked);
    msgpack_unpacked_init(unpacked);
    if (msgpack_unpack_next(unpacked, zmq_msg_data(into), zmq_msg_size(into), &at) != MSGPACK_UNPACK_SUCCESS)
        unpacked->data.type = MSGPACK_OBJECT_NIL; /* not a map: no known type */
    return true;
}

static void send_hello(void *exchange, const char *endpoint) {
    char token[257];
    read_token(endpoint, token, sizeof token); /* each time: the plant may only now have written it */
    msgpack_sbuffer frame;
    msgpack_packer to;
    msgpack_sbuffer_init(&frame);
    msgpack_packer_init(&to, &frame, msgpack_sbuffer_write);
    msgpack_pack_map(&to, 5);
    put_field(&to, "type", "hello");
    put_text(&to, "protocol");
    msgpack_pack_int(&to, 1);
    put_field(&to, "name", "client in C");
    put_text(&to, "claim");
    msgpack_pack_array(&to, 1);
    put_text(&to, "*");
    put_field(&to, "token", token);
    zmq_send(exchange, frame.data, frame.size, 0);
    msgpack_sbuffer_destroy(&frame);
}

static void read_welcome(const msgpack_object *message, Welcome *welcome) {
    const msgpack_object *identity = field(message, "identity"), *all = field(message, "actuators");
    if (identity == NULL || identity->type != MSGPACK_OBJECT_BIN || identity->via.bin.size != 16 || all == NULL ||
        all->type != MSGPACK_OBJECT_ARRAY || !text(field(message, "step_endpoint"), welcome->step_endpoint, 256))
        die(1, "expected a welcome with identity, actuators and step_endpoint");
    memcpy(welcome->identity, identity->via.bin.ptr, 16);
    text(field(message, "robot"), welcome->robot, sizeof welcome->robot);
    text(field(message, "mode"), welcome->mode, sizeof welcome->mode);
    welcome->dt = number(field(message, "dt"), 0.0);
    for (uint32_t i = 0; i < all->via.array.size && welcome->actuators < MAX_ACTUATORS; i++) {
        const msgpack_object *actuator = &all->via.array.ptr[i];
        Actuator *a = &welcome->actuator[welcome->actuators];
        if (!text(field(actuator, "name"), a->name, sizeof a->name)) continue;
        a->neutral = number(field(actuator, "neutral"), 0.0);
        double up = number(field(actuator, "upper"), a->neutral + 0.1) - a->neutral;
        double down = a->neutral - number(field(actuator, "lower"), a->neutral - 0.1);
        a->swing = 0.5 * fmin(up, down);
        welcome->actuators++;
    }
}

static void greet(void *exchange, const char *endpoint, Welcome *welcome) {
    zmq_msg_t into;
    msgpack_unpacked unpacked;
    zmq_msg_init(&into);
    msgpack_unpacked_init(&unpacked);
    for (int waited = 0; waited < PATIENCE_MS && !stopped; waited += HELLO_AGAIN_MS) {
        send_hello(exchange, endpoint);
        if (!receive(exchange, NULL, HELLO_AGAIN_MS, &into, &unpacked)) continue;
        if (is(&unpacked.data, "welcome")) {
            read_welcome(&unpacked.data, welcome);
            msgpack_unpacked_destroy(&unpacked);
            zmq_msg_close(&into);
            return;
        }
        char why[512];
        text(field(&unpacked.data, "text"), why, sizeof why);
        die(1, "refused: %s", why);
    }
    die(1, stopped ? "stopped before a plant answered at '%s'" : "no plant answered at '%s'", endpoint);
}

static void send_command(void *data, int64_t seq, int64_t step, double time_s, const Welcome *welcome) {
    int actuators = step < 0 ? 0 : welcome->actuators; /* in the warm-up, and when probed: no values */
    msgpack_sbuffer frame;
    msgpack_packer to;
    msgpack_sbuffer_init(&frame);
    msgpack_packer_init(&to, &frame, msgpack_sbuffer_write);
    msgpack_pack_map(&to, 4);
    put_field(&to, "type", "command");
    put_text(&to, "seq");
    msgpack_pack_int64(&to, seq);
    put_text(&to, "step");
    msgpack_pack_int64(&to, step);
    put_text(&to, "values");
    msgpack_pack_map(&to, (size_t)actuators);
    for (int i = 0; i < actuators; i++) {
        const Actuator *a = &welcome->actuator[i];
        put_text(&to, a->name);
        msgpack_pack_double(&to, a->neutral + a->swing * sin(2.0 * 3.14159265358979 * 0.5 * time_s));
    }
    zmq_send(data, frame.data, frame.size, ZMQ_DONTWAIT);
    msgpack_sbuffer_destroy(&frame);
}

/* Answer states until the plant sends bye, a signal arrives, or `steps` are answered. Returns the number of answers. */
static int64_t drive(void *data, void *monitor, const Welcome *welcome, int64_t steps) {
    zmq_msg_t into;
    msgpack_unpacked unpacked;
    zmq_msg_init(&into);
    msgpack_unpacked_init(&unpacked);
    int64_t seq = 0, answered = 0, missed = 0;
    bool over = false;
    while (!over && !stopped && (steps < 0 || answered < steps)) {
        int64_t newest = INT64_MIN;
        double time_s = 0.0;
        int wait_ms = POLL_MS; /* then it polls again: a paused plant sends nothing */
        while (receive(data, monitor, wait_ms, &into, &unpacked)) { /* the client answers the newest state that has arrived */
            const msgpack_object *message = &unpacked.data;
            char content[512];
            if (is(message, "state")) {
                const msgpack_object *applied = field(message, "applied");
                newest = integer(field(message, "step"), INT64_MIN);
                time_s = number(field(message, "timestamp"), 0.0);
                missed += text(field(applied, "policy"), content, sizeof content) && content[0] != '\0';
            } else if (is(message, "error")) {
                text(field(message, "text"), content, sizeof content);
                fprintf(stderr, "client: refused: %s\n", content);
            } else if (is(message, "bye")) {
                text(field(message, "reason"), content, sizeof content);
                printf("the plant sent bye: %s\n", content);
                over = true;
            }
            wait_ms = 0;
        }
        if (over || newest == INT64_MIN) continue;
        send_command(data, ++seq, newest, time_s, welcome);
        if (newest < 0) continue;
        answered++;
        if (newest % 1000 == 0) printf("step %lld, t = %.3f s\n", (long long)newest, time_s);
    }
    if (missed) printf("a policy stood in for %lld commands\n", (long long)missed);
    msgpack_unpacked_destroy(&unpacked);
    zmq_msg_close(&into);
    return answered;
}

static void send_bye(void *data) {
    msgpack_sbuffer frame;
    msgpack_packer to;
    msgpack_sbuffer_init(&frame);
    msgpack_packer_init(&to, &frame, msgpack_sbuffer_write);
    msgpack_pack_map(&to, 2);
    put_field(&to, "type", "bye");
    put_field(&to, "reason", "done");
    zmq_send(data, frame.data, frame.size, ZMQ_DONTWAIT);
    msgpack_sbuffer_destroy(&frame);
}

static void *dealer(void *context, const char *endpoint, const char *identity) {
    void *socket = zmq_socket(context, ZMQ_DEALER);
    int linger_ms = 500, enabled = 1, few = 32;
    zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_setsockopt(socket, ZMQ_IMMEDIATE, &enabled, sizeof enabled);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &few, sizeof few);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &few, sizeof few);
    zmq_setsockopt(socket, ZMQ_SNDTIMEO, &(int){PATIENCE_MS}, sizeof(int));
    if (strchr(endpoint, '[')) zmq_setsockopt(socket, ZMQ_IPV6, &enabled, sizeof enabled);
    if (identity) zmq_setsockopt(socket, ZMQ_ROUTING_ID, identity, 16); /* before connecting */
    if (zmq_connect(socket, endpoint) != 0) die(2, "cannot connect to '%s': %s", endpoint, zmq_strerror(zmq_errno()));
    return socket;
}

int main(int count, char **arguments) {
    const char *endpoint = count > 1 ? arguments[1] : "tcp://127.0.0.1:9870";
    char *end = NULL;
    int64_t steps = count > 2 ? strtoll(arguments[2], &end, 10) : -1;
    if (count > 3 || (end && (*end || steps < 1))) die(2, "expected: client [ENDPOINT [STEPS]]");
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    Welcome welcome = {0};
    void *context = zmq_ctx_new(), *exchange = dealer(context, endpoint, NULL);
    greet(exchange, endpoint, &welcome);
    printf("driving %d actuators of %s, %s, dt %g s\n", welcome.actuators, welcome.robot, welcome.mode, welcome.dt);
    void *data = dealer(context, welcome.step_endpoint, welcome.identity), *monitor = zmq_socket(context, ZMQ_PAIR);
    zmq_socket_monitor(data, "inproc://monitor", ZMQ_EVENT_DISCONNECTED);
    zmq_connect(monitor, "inproc://monitor");
    int64_t answered = drive(data, monitor, &welcome, steps);
    send_bye(data);
    printf("%lld states answered\n", (long long)answered);
    zmq_socket_monitor(data, NULL, 0);
    zmq_close(monitor);
    zmq_close(data);
    zmq_close(exchange);
    zmq_ctx_term(context);
    return 0;
}
