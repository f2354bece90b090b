/* The same lag for FMI 2, without a state to give: x' = gain u - x by Euler steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fmi2Functions.h"

enum { U, GAIN, X };

typedef struct {
    double u, gain, x;
} Lag;

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return "2.0"; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
    const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    Lag *instance = calloc(1, sizeof *instance);
    (void)name, (void)type, (void)resources, (void)functions, (void)visible, (void)logging;
    if (instance == NULL || strcmp(guid, "lag") != 0) return NULL;
    instance->gain = 2.0;
    return instance;
}
void fmi2FreeInstance(fmi2Component c) { free(c); }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean a, fmi2Real b, fmi2Real start, fmi2Boolean d, fmi2Real e)
{
    (void)c, (void)a, (void)b, (void)start, (void)d, (void)e;
    return fmi2OK;
}
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { *(Lag *)c = (Lag){0.0, 2.0, 0.0}; return fmi2OK; }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real out[])
{
    const Lag *lag = c;
    for (size_t i = 0; i < n; i++) out[i] = vr[i] == U ? lag->u : vr[i] == GAIN ? lag->gain : lag->x;
    return fmi2OK;
}
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real in[])
{
    Lag *lag = c;
    for (size_t i = 0; i < n; i++) *(vr[i] == U ? &lag->u : &lag->gain) = in[i];
    return fmi2OK;
}
fmi2Status fmi2DoStep(fmi2Component c, fmi2Real time, fmi2Real h, fmi2Boolean keep)
{
    Lag *lag = c;
    (void)time, (void)keep;
#ifdef MISCHIEF
    if (time > 0.05) { MISCHIEF; }
#endif
    lag->x += h * (lag->gain * lag->u - lag->x);
    return fmi2OK;
}
