/* A microcontroller in the loop: gets packed states of the manta over its serial line and sends the angles of its four
 * rods back, in COBS frames with a CRC (docs/bridges/serial.md). For any board with an Arduino core: small
 * buffers, no heap, no double.
 *
 *   rtmms serve manta
 *   rtmms bridge serial:config=examples/arduino/manta_gait/serial.toml          whose layout is that of the code below
 *
 * It flaps both fins, the front rods ahead of the back ones, and keeps to its height: rods held higher sink the manta.
 * The LED is lit while states come.
 */
#include <Arduino.h>
#include <math.h>
#include <string.h>

const uint32_t BAUD = 115200;
const uint8_t STATE_MARK = 82, COMMAND_MARK = 171;
const uint8_t STATE_SIZE = 14, COMMAND_SIZE = 14; /* bytes, without the CRC */
const uint8_t LONGEST = 20;                       /* of a frame: payload, 2 of the CRC, 1 of COBS, and room */

const float PI_F = 3.14159265f;
const float AMPLITUDE = 0.5f, LEAD = 0.7f; /* rad, of the rods; by which the front ones lead */
const uint32_t CYCLE_MS = 2000, SOFT_MS = 1000;
const float HEIGHT_M = 0.0f, GAIN = 0.3f, MAX_ANGLE = 0.15f; /* of the height: rad a metre, and rad at most */
const uint32_t PATIENCE_MS = 500;

struct State {
  uint32_t step, time_ms;
  float height_m;
  bool ok; /* false: the plant is silent, and the bridge sends the safe values */
};

/* -- bytes: low one first --------------------------------------------------------------------------------------- */

static uint32_t get_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static float get_f32(const uint8_t *at) {
  uint32_t bits = get_u32(at);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void put_u32(uint8_t *at, uint32_t value) {
  for (uint8_t i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (8 * i));
}

/* A number in thousandths, as the layout's i16:1000. */
static void put_milli(uint8_t *at, float value) {
  int16_t thousandths = (int16_t)lroundf(1000.0f * constrain(value, -32.0f, 32.0f));
  at[0] = (uint8_t)((uint16_t)thousandths & 0xFF);
  at[1] = (uint8_t)((uint16_t)thousandths >> 8);
}

/* -- frames ------------------------------------------------------------------------------------------------------- */

/* CRC-16/IBM-3740. */
static uint16_t crc16(const uint8_t *data, uint8_t size) {
  uint16_t crc = 0xFFFF;
  for (uint8_t i = 0; i < size; i++) {
    crc = (uint16_t)(crc ^ (uint16_t)data[i] << 8);
    for (uint8_t bit = 0; bit < 8; bit++) crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
  }
  return crc;
}

/* COBS of up to 253 bytes; out has room for one more. Returns their number. */
static uint8_t cobs_encode(const uint8_t *data, uint8_t size, uint8_t *out) {
  uint8_t length = 1, code_at = 0;
  for (uint8_t i = 0; i < size; i++) {
    if (data[i] == 0) {
      out[code_at] = (uint8_t)(length - code_at);
      code_at = length++;
    } else {
      out[length++] = data[i];
    }
  }
  out[code_at] = (uint8_t)(length - code_at);
  return length;
}

/* Of a frame without its zero, where it stands. Returns the number of bytes, 0 where it is none. */
static uint8_t cobs_decode(uint8_t *data, uint8_t size) {
  uint8_t in = 0, out = 0;
  while (in < size) {
    uint8_t code = data[in++];
    if (code == 0 || code - 1 > size - in) return 0;
    for (uint8_t i = 1; i < code; i++) data[out++] = data[in++];
    if (code < 255 && in < size) data[out++] = 0;
  }
  return out;
}

static void send_frame(uint8_t *payload, uint8_t size) { /* payload has room for the CRC */
  uint8_t frame[LONGEST];
  uint16_t crc = crc16(payload, size);
  payload[size] = (uint8_t)(crc & 0xFF);
  payload[size + 1] = (uint8_t)(crc >> 8);
  uint8_t length = cobs_encode(payload, (uint8_t)(size + 2), frame);
  frame[length++] = 0;
  Serial.write(frame, length);
}

/* -- control ------------------------------------------------------------------------------------------------------ */

static uint8_t seq;
static uint32_t received_ms;
static bool lit;

static void answer(const State &state) {
  float soft = state.time_ms < SOFT_MS ? (float)state.time_ms / SOFT_MS : 1.0f;
  float cycle = 2.0f * PI_F * (float)(state.time_ms % CYCLE_MS) / CYCLE_MS;
  float bias = constrain(GAIN * (state.height_m - HEIGHT_M), -MAX_ANGLE, MAX_ANGLE);
  float front = soft * AMPLITUDE * sinf(cycle + LEAD) + bias;
  float back = soft * AMPLITUDE * sinf(cycle) + bias;
  uint8_t payload[COMMAND_SIZE + 2];
  payload[0] = COMMAND_MARK;
  payload[1] = seq++;
  put_u32(payload + 2, state.step); /* which state this answers */
  put_milli(payload + 6, front);    /* left.front, left.back, right.front, right.back */
  put_milli(payload + 8, back);
  put_milli(payload + 10, front);
  put_milli(payload + 12, back);
  send_frame(payload, COMMAND_SIZE);
}

static void take(const uint8_t *payload) {
  State state;
  if (payload[0] != STATE_MARK) return;
  state.step = get_u32(payload + 1);
  state.time_ms = get_u32(payload + 5);
  state.height_m = get_f32(payload + 9);
  state.ok = payload[13] == 1;
  if (!state.ok) return;
  received_ms = millis();
  lit = true;
  answer(state);
}

/* -- the line: a frame ends at a zero; what is broken costs the frame it is in ------------------------------------- */

static void take_byte(uint8_t byte) {
  static uint8_t frame[LONGEST];
  static uint8_t size;
  static bool overlong;
  if (byte != 0) {
    if (size < LONGEST) frame[size++] = byte;
    else overlong = true;
    return;
  }
  uint8_t length = overlong ? 0 : cobs_decode(frame, size);
  size = 0;
  overlong = false;
  if (length != STATE_SIZE + 2) return;
  uint16_t crc = (uint16_t)(frame[STATE_SIZE] | frame[STATE_SIZE + 1] << 8);
  if (crc == crc16(frame, STATE_SIZE)) take(frame);
}

void setup() {
  pinMode(LED_BUILTIN, OUTPUT);
  Serial.begin(BAUD);
  Serial.write((uint8_t)0); /* ends whatever was on the line */
}

void loop() {
  while (Serial.available() > 0) take_byte((uint8_t)Serial.read());
  if (lit && millis() - received_ms > PATIENCE_MS) lit = false;
  digitalWrite(LED_BUILTIN, lit ? HIGH : LOW);
}
