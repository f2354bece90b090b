/* As much of Arduino.h as examples/arduino needs, on a file descriptor. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define constrain(value, low, high) ((value) < (low) ? (low) : (value) > (high) ? (high) : (value))

enum { LOW, HIGH, OUTPUT, LED_BUILTIN = 13 };

struct SerialLine {
  int descriptor;
  uint8_t received[64]; /* as an Uno's */
  size_t from, count;
  unsigned long baud;
  void begin(unsigned long rate) { baud = rate; }
  int available();
  int read();
  size_t write(const uint8_t *data, size_t size);
  size_t write(uint8_t byte) { return write(&byte, 1); }
};

extern SerialLine Serial;
unsigned long millis();
void pinMode(int pin, int mode);
void digitalWrite(int pin, int level);
void setup();
void loop();
