/* A board: runs a sketch with its serial line on the file descriptor that is the first word, until that is closed.
 * Prints LED 1 and LED 0 on standard output as the LED goes on and off. */
#include "Arduino.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

SerialLine Serial;
static bool closed;

int SerialLine::available() {
  if (count == 0) {
    pollfd ready = {descriptor, POLLIN, 0};
    if (poll(&ready, 1, 1) > 0) {
      ssize_t size = ::read(descriptor, received, sizeof received);
      if (size <= 0 && errno != EINTR) closed = true;
      from = 0;
      count = size > 0 ? (size_t)size : 0;
    }
  }
  return (int)count;
}

int SerialLine::read() {
  if (count == 0) return -1;
  count--;
  return received[from++];
}

size_t SerialLine::write(const uint8_t *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t more = ::write(descriptor, data + done, size - done);
    if (more < 0) {
      closed = true;
      return done;
    }
    done += (size_t)more;
  }
  return size;
}

unsigned long millis() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (unsigned long)now.tv_sec * 1000UL + (unsigned long)(now.tv_nsec / 1000000);
}

void pinMode(int, int) {}

void digitalWrite(int, int level) {
  static int last = -1;
  if (level != last) printf("LED %d\n", level);
  fflush(stdout);
  last = level;
}

int main(int, char **arguments) {
  Serial.descriptor = atoi(arguments[1]);
  setup();
  while (!closed) loop();
  return 0;
}
