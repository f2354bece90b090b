/* A session of a lockstep run with czmq, from docs/protocol.md: token, hello, warm-up, an answer to every state. */
#include <czmq.h>
#include <msgpack.h>

static msgpack_object field(const msgpack_object *map, const char *name) {
    for (uint32_t k = 0; k < map->via.map.size; k++) {
        msgpack_object_kv *entry = &map->via.map.ptr[k];
        if (entry->key.type == MSGPACK_OBJECT_STR && entry->key.via.str.size == strlen(name)
            && !memcmp(entry->key.via.str.ptr, name, strlen(name))) return entry->val;
    }
    return (msgpack_object){.type = MSGPACK_OBJECT_NIL};
}

static void text(msgpack_packer *to, const char *content) { msgpack_pack_str_with_body(to, content, strlen(content)); }

static void read_map(zframe_t *frame, msgpack_unpacked *into) {
    msgpack_unpacked_init(into);
    size_t at = 0;
    if (!frame || msgpack_unpack_next(into, (char *)zframe_data(frame), zframe_size(frame), &at) != MSGPACK_UNPACK_SUCCESS)
        exit(3);
}

static bool is(const msgpack_object *map, const char *kind) {
    msgpack_object type = field(map, "type");
    return type.via.str.size == strlen(kind) && !memcmp(type.via.str.ptr, kind, strlen(kind));
}

static void send_all(zsock_t *socket, msgpack_sbuffer *content) {
    zframe_t *frame = zframe_new(content->data, content->size);
    zframe_send(&frame, socket, 0);
    msgpack_sbuffer_clear(content);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    char token[80] = "";
    FILE *file = fopen(arguments[2], "r");
    if (!file || !fgets(token, sizeof token, file)) return 2;
    fclose(file);
    token[strcspn(token, "\n")] = 0;
    zsock_t *exchange = zsock_new_dealer(arguments[1]);
    msgpack_sbuffer content;
    msgpack_packer to;
    msgpack_sbuffer_init(&content);
    msgpack_packer_init(&to, &content, msgpack_sbuffer_write);
    msgpack_pack_map(&to, 5);
    text(&to, "type"), text(&to, "hello"), text(&to, "protocol"), msgpack_pack_int(&to, 1);
    text(&to, "name"), text(&to, "czmq"), text(&to, "token"), text(&to, token);
    text(&to, "claim"), msgpack_pack_array(&to, 1), text(&to, "*");
    send_all(exchange, &content);
    msgpack_unpacked welcome;
    zframe_t *frame = zframe_recv(exchange);
    read_map(frame, &welcome);
    if (!is(&welcome.data, "welcome")) return 1;
    msgpack_object identity = field(&welcome.data, "identity"), at = field(&welcome.data, "step_endpoint");
    char *endpoint = strndup(at.via.str.ptr, at.via.str.size);
    zsock_t *data = zsock_new(ZMQ_DEALER);
    zmq_setsockopt(zsock_resolve(data), ZMQ_ROUTING_ID, identity.via.bin.ptr, identity.via.bin.size);
    if (zsock_connect(data, "%s", endpoint)) return 1;
    int64_t seq = 0, answered = 0;
    for (;;) {
        zframe_t *received = zframe_recv(data);
        msgpack_unpacked state;
        read_map(received, &state);
        if (!is(&state.data, "state")) break;
        int64_t step = field(&state.data, "step").via.i64;
        msgpack_object granted = field(&welcome.data, "granted");
        uint32_t driven = step < 0 ? 0 : granted.via.array.size;
        msgpack_pack_map(&to, 4);
        text(&to, "type"), text(&to, "command"), text(&to, "seq"), msgpack_pack_int64(&to, ++seq);
        text(&to, "step"), msgpack_pack_int64(&to, step), text(&to, "values"), msgpack_pack_map(&to, driven);
        for (uint32_t k = 0; k < driven; k++)
            msgpack_pack_object(&to, granted.via.array.ptr[k]), msgpack_pack_double(&to, 0.1);
        send_all(data, &content);
        answered += step >= 0;
        msgpack_unpacked_destroy(&state);
        zframe_destroy(&received);
    }
    printf("%lld states answered\n", (long long)answered);
    zsock_destroy(&data);
    zsock_destroy(&exchange);
    return 0;
}
