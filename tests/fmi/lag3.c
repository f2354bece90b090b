/* A foreign FMU for the tests, FMI 3: a first-order lag by Euler steps of 10 ms, exact to follow by hand.
 *
 * x' = gain (u[0] - u[1]) - x while `open`; count is its steps; y = (x, -x). It fails at |x| > 100, and asks for an
 * end at x > 10. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "fmi3Functions.h"

enum { TIME, U, OPEN, GAIN, X, Y, COUNT, SEED };

typedef struct {
    double time, u[2], gain, x;
    int open, count, seed;
} Lag;

typedef struct {
    Lag now;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log_message;
} Instance;

static const Lag START = {0.0, {0.0, 0.0}, 2.0, 0.0, 1, 0, 0};

const char *fmi3GetVersion(void) { return "3.0"; }

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
    fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference required[], size_t n,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log_message, fmi3IntermediateUpdateCallback update)
{
    Instance *instance = calloc(1, sizeof *instance);
    (void)name, (void)resources, (void)visible, (void)logging, (void)events, (void)early, (void)required, (void)n;
    (void)update;
    if (instance == NULL || strcmp(token, "lag") != 0) return NULL;
    instance->now = START;
    instance->environment = environment;
    instance->log_message = log_message;
    return instance;
}
void fmi3FreeInstance(fmi3Instance instance) { free(instance); }

fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean a, fmi3Float64 b, fmi3Float64 start,
    fmi3Boolean c, fmi3Float64 d)
{
    (void)a, (void)b, (void)c, (void)d;
    ((Instance *)instance)->now.time = start;
    return fmi3OK;
}
fmi3Status fmi3ExitInitializationMode(fmi3Instance instance) { (void)instance; return fmi3OK; }
fmi3Status fmi3Terminate(fmi3Instance instance) { (void)instance; return fmi3OK; }
fmi3Status fmi3Reset(fmi3Instance instance) { ((Instance *)instance)->now = START; return fmi3OK; }

fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Float64 out[], size_t m)
{
    const Lag *now = &((Instance *)instance)->now;
    size_t at = 0;
    (void)m;
    for (size_t i = 0; i < n; i++) switch (vr[i]) {
        case TIME: out[at++] = now->time; break;
        case U: out[at++] = now->u[0]; out[at++] = now->u[1]; break;
        case GAIN: out[at++] = now->gain; break;
        case X: out[at++] = now->x; break;
        case Y: out[at++] = now->x; out[at++] = -now->x; break;
        default: return fmi3Error;
    }
    return fmi3OK;
}
fmi3Status fmi3SetFloat64(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Float64 in[], size_t m)
{
    Lag *now = &((Instance *)instance)->now;
    size_t at = 0;
    (void)m;
    for (size_t i = 0; i < n; i++) switch (vr[i]) {
        case U: now->u[0] = in[at++]; now->u[1] = in[at++]; break;
        case GAIN: now->gain = in[at++]; break;
        default: return fmi3Error;
    }
    return fmi3OK;
}
fmi3Status fmi3GetInt32(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Int32 out[], size_t m)
{
    (void)m;
    for (size_t i = 0; i < n; i++)
        out[i] = vr[i] == COUNT ? ((Instance *)instance)->now.count : ((Instance *)instance)->now.seed;
    return fmi3OK;
}
fmi3Status fmi3SetInt32(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Int32 in[], size_t m)
{
    (void)vr, (void)n, (void)m;
    ((Instance *)instance)->now.seed = in[0];
    return fmi3OK;
}
fmi3Status fmi3SetBoolean(fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Boolean in[], size_t m)
{
    (void)vr, (void)n, (void)m;
    ((Instance *)instance)->now.open = in[0];
    return fmi3OK;
}

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 time, fmi3Float64 h, fmi3Boolean keep, fmi3Boolean *event,
    fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *reached)
{
    Instance *me = instance;
    Lag *now = &me->now;
    (void)keep;
    if (now->open) now->x += h * (now->gain * (now->u[0] - now->u[1]) - now->x);
    now->count++;
    now->time = *reached = time + h;
    *event = *early = fmi3False;
    *terminate = now->x > 10.0;
    if (fabs(now->x) > 100.0) {
        me->log_message(me->environment, fmi3Error, "logStatusError", "the lag burst");
        return fmi3Error;
    }
    return fmi3OK;
}

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    if (*state == NULL) *state = malloc(sizeof(Lag));
    memcpy(*state, &((Instance *)instance)->now, sizeof(Lag));
    return fmi3OK;
}
fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state)
{
    memcpy(&((Instance *)instance)->now, state, sizeof(Lag));
    return fmi3OK;
}
fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    (void)instance;
    free(*state);
    *state = NULL;
    return fmi3OK;
}
fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t *size)
{
    (void)instance, (void)state;
    *size = sizeof(Lag);
    return fmi3OK;
}
fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size)
{
    (void)instance;
    memcpy(bytes, state, size);
    return fmi3OK;
}
fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state)
{
    (void)instance;
    *state = malloc(sizeof(Lag));
    memcpy(*state, bytes, size);
    return fmi3OK;
}
