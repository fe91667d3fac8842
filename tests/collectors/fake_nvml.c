/* Fake libnvidia-ml.so.1 for tests. Self-contained: no NVIDIA header needed.
 *
 * State comes from a control file (env FAKE_NVML_CONTROL), re-read when its
 * (mtime_ns, size, inode) changes, checked on every call (one stat(2)).
 * In-process tests may instead call fake_nvml_set("key=value") through ctypes.
 *
 * Values are whole numbers; what a key means is where it is read. A field that no line names is not supported.
 *
 * Lines:  count=8
 *         driver=570.86.15
 *         gpu*.util=97            gpu3.power_mw=650000
 *         gpu2.error=15           every device call on gpu2 returns 15 (GPU_IS_LOST)
 *         gpu2.error_after=100    ... only from the 100th call on
 *         fn.nvmlDeviceGetPowerUsage=3              that function always returns 3
 *         gpu1.fn.nvmlDeviceGetTotalEccErrors=3     ... on gpu1 only
 *         fn.nvmlInitWithFlags=9                    init fails, driver not loaded
 *         delay_us.nvmlDeviceGetPcieThroughput=20000
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int ret_t;
enum { OK = 0, UNINIT = 1, INVAL = 2, NOTSUP = 3, NOPERM = 4, NOTFOUND = 6, TOOSMALL = 7, TIMEOUT = 10, LOST = 15,
       VERMISMATCH = 25 };
#define EXPORT __attribute__((visibility("default")))
#define MAXGPU 64
#define MAXMIG 8

typedef struct { char key[96]; long long val; } kv_t;
typedef struct fake_dev {
  unsigned index; int is_mig; unsigned gi; struct fake_dev *parent;
  long long calls;
} dev_t_;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static kv_t kvs[4096]; static int nkv;
static char strs[64][2][160]; static int nstr;
static dev_t_ devs[MAXGPU], migs[MAXGPU][MAXMIG];
static int refcount; static pid_t init_pid;
static struct timespec loaded_mtime; static off_t loaded_size = -1; static ino_t loaded_ino;
static struct timespec t0;
static struct { const char *fn; unsigned gpu; unsigned long long n; } counted[2048]; static unsigned ncounted;
static unsigned ev_head, ev_tail; static unsigned long long registered[MAXGPU];
EXPORT unsigned long long fake_nvml_calls;

static void put(const char *k, const char *v) {
  char *end; long long n = *v == '-' ? strtoll(v, &end, 0) : (long long)strtoull(v, &end, 0);
  if (*end && *end != '\n') { /* string value */
    for (int i = 0; i < nstr; i++) if (!strcmp(strs[i][0], k)) { snprintf(strs[i][1], 160, "%s", v); return; }
    if (nstr < 64) { snprintf(strs[nstr][0], 160, "%s", k); snprintf(strs[nstr++][1], 160, "%s", v); }
    return;
  }
  for (int i = 0; i < nkv; i++) if (!strcmp(kvs[i].key, k)) { kvs[i].val = n; return; }
  if (nkv < 4096) { snprintf(kvs[nkv].key, 96, "%s", k); kvs[nkv++].val = n; }
}
static int find(const char *k, long long *out) {
  for (int i = 0; i < nkv; i++) if (!strcmp(kvs[i].key, k)) { *out = kvs[i].val; return 1; }
  return 0;
}
static const char *find_str(const char *k) {
  for (int i = 0; i < nstr; i++) if (!strcmp(strs[i][0], k)) return strs[i][1];
  return 0;
}
static void parse_line(char *line) {
  char *hash = strchr(line, '#'); if (hash) *hash = 0;
  char *nl = line + strlen(line); while (nl > line && (nl[-1] == '\n' || nl[-1] == '\r' || nl[-1] == ' ')) *--nl = 0;
  char *eq = strchr(line, '='); if (!eq) return;
  *eq = 0; put(line, eq + 1);
}
static void reload(void) { /* mu held */
  const char *path = getenv("FAKE_NVML_CONTROL"); struct stat st;
  if (!path || stat(path, &st)) return;
  if (st.st_size == loaded_size && st.st_ino == loaded_ino && st.st_mtim.tv_sec == loaded_mtime.tv_sec &&
      st.st_mtim.tv_nsec == loaded_mtime.tv_nsec) return;
  FILE *f = fopen(path, "r"); if (!f) return;
  nkv = nstr = 0; char line[512];
  while (fgets(line, sizeof line, f)) parse_line(line);
  fclose(f);
  loaded_size = st.st_size; loaded_ino = st.st_ino; loaded_mtime = st.st_mtim;
}
EXPORT void fake_nvml_set(const char *kv) {
  char line[512]; snprintf(line, sizeof line, "%s", kv);
  pthread_mutex_lock(&mu); parse_line(line); pthread_mutex_unlock(&mu);
}
EXPORT void fake_nvml_clear(void) {
  pthread_mutex_lock(&mu); nkv = nstr = 0; loaded_size = -1; refcount = 0;
  for (int i = 0; i < MAXGPU; i++) devs[i].calls = 0;
  memset(registered, 0, sizeof registered); ev_head = ev_tail; ncounted = 0;
  pthread_mutex_unlock(&mu);
}
static int has(dev_t_ *d, const char *field, long long *v) {
  char k[128];
  if (d && d->is_mig) { snprintf(k, sizeof k, "gpu%u.mig%u.%s", d->index, d->gi, field); return find(k, v); }
  if (d) { snprintf(k, sizeof k, "gpu%u.%s", d->index, field); if (find(k, v)) return 1; }
  snprintf(k, sizeof k, "gpu*.%s", field); return find(k, v);
}
static long long get(dev_t_ *d, const char *field, long long dflt) { long long v; return has(d, field, &v) ? v : dflt; }
static const char *gets_(dev_t_ *d, const char *field, const char *dflt) {
  char k[128]; const char *s;
  snprintf(k, sizeof k, "gpu%u.%s", d->index, field); if ((s = find_str(k))) return s;
  snprintf(k, sizeof k, "gpu*.%s", field); if ((s = find_str(k))) return s;
  return dflt;
}
static long long gcount(void) { long long v; return find("count", &v) ? v : 8; }
static void delay(const char *fn) {
  char k[128]; long long v; snprintf(k, sizeof k, "delay_us.%s", fn);
  if (find(k, &v) && v > 0) { pthread_mutex_unlock(&mu); usleep((useconds_t)v); pthread_mutex_lock(&mu); }
}
static void count_call(const char *fn, unsigned gpu) {
  for (unsigned i = 0; i < ncounted; i++) if (counted[i].gpu == gpu && !strcmp(counted[i].fn, fn)) { counted[i].n++; return; }
  if (ncounted < 2048) { counted[ncounted].fn = fn; counted[ncounted].gpu = gpu; counted[ncounted++].n = 1; } }
/* How often a function was called, of one GPU or, with -1, of none in particular. */
EXPORT unsigned long long fake_nvml_called(const char *fn, int gpu) { unsigned long long n = 0; pthread_mutex_lock(&mu);
  for (unsigned i = 0; i < ncounted; i++) if (counted[i].gpu == (unsigned)gpu && !strcmp(counted[i].fn, fn)) n = counted[i].n;
  pthread_mutex_unlock(&mu); return n; }
static ret_t enter(const char *fn, dev_t_ *d) { /* mu held on return */
  pthread_mutex_lock(&mu); fake_nvml_calls++; reload(); count_call(fn, d ? d->index : ~0u); delay(fn);
  char k[128]; long long v;
  snprintf(k, sizeof k, "fn.%s", fn); if (find(k, &v)) return (ret_t)v;
  if (!refcount && strncmp(fn, "nvmlInit", 8)) return UNINIT;
  if (d) {
    if (!((d >= devs && d < devs + MAXGPU) || (d >= &migs[0][0] && d < &migs[0][0] + MAXGPU * MAXMIG))) return INVAL;
    d->calls++;
    snprintf(k, sizeof k, "gpu%u.fn.%s", d->index, fn); if (find(k, &v)) return (ret_t)v;
    long long err = get(d->is_mig ? d->parent : d, "error", 0), after = get(d, "error_after", 0);
    if (err && d->calls > after) return (ret_t)err;
  }
  return OK;
}
#define IN(fn, d) ret_t r_ = enter(fn, d); if (r_) { pthread_mutex_unlock(&mu); return r_; }
#define OUT(x) do { ret_t o_ = (x); pthread_mutex_unlock(&mu); return o_; } while (0)
static double elapsed(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
  return (t.tv_sec - t0.tv_sec) + (t.tv_nsec - t0.tv_nsec) / 1e9; }

static ret_t do_init(const char *fn) {
  ret_t r = enter(fn, 0); if (r) { pthread_mutex_unlock(&mu); return r; }
  if (!refcount++) { clock_gettime(CLOCK_MONOTONIC, &t0); init_pid = getpid(); }
  for (unsigned i = 0; i < MAXGPU; i++) { devs[i].index = i;
    for (unsigned j = 0; j < MAXMIG; j++) migs[i][j] = (dev_t_){.index = i, .is_mig = 1, .gi = j + 1, .parent = &devs[i]}; }
  OUT(OK);
}
EXPORT ret_t nvmlInitWithFlags(unsigned f) { (void)f; return do_init("nvmlInitWithFlags"); }
EXPORT ret_t nvmlInit_v2(void) { return do_init("nvmlInit_v2"); }
EXPORT ret_t nvmlShutdown(void) { IN("nvmlShutdown", 0); refcount--; OUT(OK); }
EXPORT const char *nvmlErrorString(ret_t r) {
  switch (r) { case 0: return "Success"; case 3: return "Not Supported"; case 15: return "GPU is lost";
    case 27: return "System is not in ready state"; default: return "Fake NVML error"; } }
static ret_t str_out(const char *fn, char *b, unsigned n, const char *s) {
  IN(fn, 0); if (strlen(s) + 1 > n) OUT(TOOSMALL); strcpy(b, s); OUT(OK); }
EXPORT ret_t nvmlSystemGetDriverVersion(char *b, unsigned n) {
  const char *s = find_str("driver"); return str_out("nvmlSystemGetDriverVersion", b, n, s ? s : "570.86.15"); }
EXPORT ret_t nvmlSystemGetNVMLVersion(char *b, unsigned n) { return str_out("nvmlSystemGetNVMLVersion", b, n, "12.570.86.15"); }
EXPORT ret_t nvmlSystemGetCudaDriverVersion(int *v) { IN("nvmlSystemGetCudaDriverVersion", 0); *v = 12080; OUT(OK); }
EXPORT ret_t nvmlSystemGetCudaDriverVersion_v2(int *v) { IN("nvmlSystemGetCudaDriverVersion_v2", 0); *v = 12080; OUT(OK); }
EXPORT ret_t nvmlDeviceGetCount_v2(unsigned *n) { IN("nvmlDeviceGetCount_v2", 0); *n = (unsigned)gcount(); OUT(OK); }
EXPORT ret_t nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) {
  IN("nvmlDeviceGetHandleByIndex_v2", 0); if (i >= gcount()) OUT(INVAL);
  long long e = get(&devs[i], "handle_error", 0); if (e) OUT((ret_t)e);
  *h = &devs[i]; OUT(OK); }
static void uuid_of(dev_t_ *d, char *b, size_t n) {
  if (d->is_mig) snprintf(b, n, "MIG-%08x-0000-4000-8000-%012x", d->index, d->gi);
  else snprintf(b, n, "GPU-%08x-fa4e-4000-8000-%012x", d->index, d->index); }
EXPORT ret_t nvmlDeviceGetHandleByUUID(const char *u, void **h) {
  IN("nvmlDeviceGetHandleByUUID", 0); char b[96];
  for (unsigned i = 0; i < gcount(); i++) { uuid_of(&devs[i], b, 96); if (!strcmp(b, u)) { *h = &devs[i]; OUT(OK); }
    for (unsigned j = 0; j < (unsigned)get(&devs[i], "mig", 0); j++) { uuid_of(&migs[i][j], b, 96);
      if (!strcmp(b, u)) { *h = &migs[i][j]; OUT(OK); } } }
  OUT(NOTFOUND); }
EXPORT ret_t nvmlDeviceGetUUID(dev_t_ *d, char *b, unsigned n) { IN("nvmlDeviceGetUUID", d); uuid_of(d, b, n); OUT(OK); }
EXPORT ret_t nvmlDeviceGetIndex(dev_t_ *d, unsigned *i) { IN("nvmlDeviceGetIndex", d); *i = d->index; OUT(OK); }
EXPORT ret_t nvmlDeviceGetMinorNumber(dev_t_ *d, unsigned *i) { IN("nvmlDeviceGetMinorNumber", d); *i = d->index; OUT(OK); }
EXPORT ret_t nvmlDeviceGetSerial(dev_t_ *d, char *b, unsigned n) { IN("nvmlDeviceGetSerial", d); snprintf(b, n, "16520%08u", d->index); OUT(OK); }
EXPORT ret_t nvmlDeviceGetName(dev_t_ *d, char *b, unsigned n) {
  IN("nvmlDeviceGetName", d); snprintf(b, n, "%s%s", gets_(d, "name", "NVIDIA H100 80GB HBM3"), d->is_mig ? " MIG 1g.10gb" : ""); OUT(OK); }
typedef struct { char busIdLegacy[16]; unsigned domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } pci_t;
EXPORT ret_t nvmlDeviceGetPciInfo_v3(dev_t_ *d, pci_t *p) {
  IN("nvmlDeviceGetPciInfo_v3", d); memset(p, 0, sizeof *p); p->bus = 0x10 + d->index;
  snprintf(p->busIdLegacy, 16, "0000:%02X:00.0", p->bus); snprintf(p->busId, 32, "00000000:%02X:00.0", p->bus); OUT(OK); }
EXPORT ret_t nvmlDeviceGetUtilizationRates(dev_t_ *d, unsigned u[2]) {
  IN("nvmlDeviceGetUtilizationRates", d); if (d->is_mig || get(d, "mig", 0)) OUT(NOTSUP);
  u[0] = (unsigned)get(d, "util", 0); u[1] = (unsigned)get(d, "util_mem", 0); OUT(OK); }
#define H100_BYTES 85520809984LL
typedef struct { unsigned long long total, free, used; } mem1_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } mem2_t;
static void mem(dev_t_ *d, mem2_t *m) { m->total = get(d, "mem_total", H100_BYTES); m->reserved = get(d, "mem_reserved", 559939584LL);
  m->used = get(d, "mem_used", 0); m->free = m->total - m->reserved - m->used; }
EXPORT ret_t nvmlDeviceGetMemoryInfo(dev_t_ *d, mem1_t *o) {
  IN("nvmlDeviceGetMemoryInfo", d); mem2_t m; mem(d, &m); o->total = m.total; o->free = m.free;
  o->used = m.used + (get(d, "mem_v1_reserved", 1) ? m.reserved : 0); OUT(OK); } /* without it before R510 */
EXPORT ret_t nvmlDeviceGetMemoryInfo_v2(dev_t_ *d, mem2_t *o) {
  IN("nvmlDeviceGetMemoryInfo_v2", d); if (o->version != 0x02000028) OUT(VERMISMATCH); mem(d, o); OUT(OK); }
static ret_t u32(const char *fn, dev_t_ *d, unsigned *o, const char *f, long long dflt) { IN(fn, d); *o = (unsigned)get(d, f, dflt); OUT(OK); }
EXPORT ret_t nvmlDeviceGetPowerUsage(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetPowerUsage", d, o, "power_mw", 95000); }
EXPORT ret_t nvmlDeviceGetEnforcedPowerLimit(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetEnforcedPowerLimit", d, o, "power_limit_mw", 700000); }
EXPORT ret_t nvmlDeviceGetPowerManagementLimit(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetPowerManagementLimit", d, o, "power_limit_mw", 700000); }
EXPORT ret_t nvmlDeviceGetTotalEnergyConsumption(dev_t_ *d, unsigned long long *o) {
  IN("nvmlDeviceGetTotalEnergyConsumption", d); long long fixed = get(d, "energy_mj", -1);
  *o = fixed >= 0 ? (unsigned long long)fixed : (unsigned long long)(1000000 + elapsed() * get(d, "power_mw", 95000)); OUT(OK); }
EXPORT ret_t nvmlDeviceGetTemperature(dev_t_ *d, int s, unsigned *o) { (void)s; return u32("nvmlDeviceGetTemperature", d, o, "temp", 34); }
typedef struct { unsigned version; int sensor; int temp; } temp1_t;
EXPORT ret_t nvmlDeviceGetTemperatureV(dev_t_ *d, temp1_t *t) { IN("nvmlDeviceGetTemperatureV", d); t->temp = (int)get(d, "temp", 34); OUT(OK); }
EXPORT ret_t nvmlDeviceGetTemperatureThreshold(dev_t_ *d, int t, unsigned *o) { (void)t; return u32("nvmlDeviceGetTemperatureThreshold", d, o, "temp_slowdown", 87); }
EXPORT ret_t nvmlDeviceGetClockInfo(dev_t_ *d, int c, unsigned *o) { return u32("nvmlDeviceGetClockInfo", d, o, c == 2 ? "clock_mem" : "clock_sm", c == 2 ? 2619 : 1980); }
EXPORT ret_t nvmlDeviceGetMaxClockInfo(dev_t_ *d, int c, unsigned *o) { return u32("nvmlDeviceGetMaxClockInfo", d, o, c == 2 ? "clock_mem_max" : "clock_sm_max", c == 2 ? 2619 : 1980); }
static ret_t u64(const char *fn, dev_t_ *d, unsigned long long *o, const char *f, long long dflt) { IN(fn, d); *o = (unsigned long long)get(d, f, dflt); OUT(OK); }
EXPORT ret_t nvmlDeviceGetCurrentClocksEventReasons(dev_t_ *d, unsigned long long *o) { return u64("nvmlDeviceGetCurrentClocksEventReasons", d, o, "clock_reasons", 0); }
EXPORT ret_t nvmlDeviceGetCurrentClocksThrottleReasons(dev_t_ *d, unsigned long long *o) { return u64("nvmlDeviceGetCurrentClocksThrottleReasons", d, o, "clock_reasons", 0); }
EXPORT ret_t nvmlDeviceGetPerformanceState(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetPerformanceState", d, o, "pstate", 0); }
EXPORT ret_t nvmlDeviceGetPcieThroughput(dev_t_ *d, int c, unsigned *o) { return u32("nvmlDeviceGetPcieThroughput", d, o, c ? "pcie_rx_kbs" : "pcie_tx_kbs", 0); }
EXPORT ret_t nvmlDeviceGetPcieReplayCounter(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetPcieReplayCounter", d, o, "pcie_replay", 0); }
EXPORT ret_t nvmlDeviceGetTotalEccErrors(dev_t_ *d, int et, int ct, unsigned long long *o) {
  return u64("nvmlDeviceGetTotalEccErrors", d, o, et ? (ct ? "ecc_unc_agg" : "ecc_unc_vol") : (ct ? "ecc_cor_agg" : "ecc_cor_vol"), 0); }
EXPORT ret_t nvmlDeviceGetRemappedRows(dev_t_ *d, unsigned *c, unsigned *u, unsigned *p, unsigned *f) {
  IN("nvmlDeviceGetRemappedRows", d); if (get(d, "mig", 0)) OUT(NOTSUP);
  *c = (unsigned)get(d, "remap_cor", 0); *u = (unsigned)get(d, "remap_unc", 0); *p = (unsigned)get(d, "remap_pending", 0); *f = (unsigned)get(d, "remap_failed", 0); OUT(OK); }
EXPORT ret_t nvmlDeviceGetMigMode(dev_t_ *d, unsigned *c, unsigned *p) { IN("nvmlDeviceGetMigMode", d); *c = *p = get(d, "mig", 0) > 0; OUT(OK); }
EXPORT ret_t nvmlDeviceGetMaxMigDeviceCount(dev_t_ *d, unsigned *o) { IN("nvmlDeviceGetMaxMigDeviceCount", d); *o = 7; OUT(OK); }
EXPORT ret_t nvmlDeviceGetMigDeviceHandleByIndex(dev_t_ *d, unsigned i, void **h) {
  IN("nvmlDeviceGetMigDeviceHandleByIndex", d); if (i >= (unsigned)get(d, "mig", 0)) OUT(NOTFOUND); *h = &migs[d->index][i]; OUT(OK); }
EXPORT ret_t nvmlDeviceIsMigDeviceHandle(dev_t_ *d, unsigned *o) { IN("nvmlDeviceIsMigDeviceHandle", d); *o = d->is_mig; OUT(OK); }
EXPORT ret_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(dev_t_ *d, void **h) { IN("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", d); if (!d->is_mig) OUT(INVAL); *h = d->parent; OUT(OK); }
EXPORT ret_t nvmlDeviceGetGpuInstanceId(dev_t_ *d, unsigned *o) { IN("nvmlDeviceGetGpuInstanceId", d); if (!d->is_mig) OUT(NOTSUP); *o = d->gi; OUT(OK); }
EXPORT ret_t nvmlDeviceGetComputeInstanceId(dev_t_ *d, unsigned *o) { IN("nvmlDeviceGetComputeInstanceId", d); if (!d->is_mig) OUT(NOTSUP); *o = 0; OUT(OK); }
typedef struct { unsigned sms, copy, dec, enc, jpeg, ofa, gis, cis; unsigned long long memory_mb; } attrs_t;
EXPORT ret_t nvmlDeviceGetAttributes_v2(dev_t_ *d, attrs_t *o) {
  IN("nvmlDeviceGetAttributes_v2", d); memset(o, 0, sizeof *o); if (!d->is_mig) OUT(NOTSUP); o->sms = (unsigned)get(d, "sms", 16); o->gis = o->cis = 1; OUT(OK); }
typedef struct { unsigned pid; unsigned long long mem; unsigned gi, ci; } proc_t;
EXPORT ret_t nvmlDeviceGetComputeRunningProcesses_v3(dev_t_ *d, unsigned *n, proc_t *p) {
  IN("nvmlDeviceGetComputeRunningProcesses_v3", d); unsigned have = (unsigned)get(d, "procs", 0), room = *n; *n = have;
  if (!have) OUT(OK);
  if (!p || room < have) OUT(TOOSMALL);
  for (unsigned i = 0; i < have; i++) p[i] = (proc_t){(unsigned)get(d, "pid", getpid()) + i, (unsigned long long)get(d, "mem_used", 0) / have, ~0u, ~0u};
  OUT(OK); }
typedef union { double d; int si; unsigned ui; unsigned long ul; unsigned long long ull; long long sll; } val_t;
typedef struct { unsigned fieldId, scopeId; long long ts, latency; int type; ret_t ret; val_t v; } field_t;
EXPORT ret_t nvmlDeviceGetFieldValues(dev_t_ *d, int n, field_t *f) {
  IN("nvmlDeviceGetFieldValues", d); struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
  for (int i = 0; i < n; i++) { char k[64]; long long v; int known;
    f[i].ts = t.tv_sec * 1000000LL + t.tv_nsec / 1000; f[i].latency = 12;
    snprintf(k, sizeof k, "field%u_ret", f[i].fieldId); if (has(d, k, &v) && v) { f[i].ret = (ret_t)v; continue; }
    snprintf(k, sizeof k, "field%u_type", f[i].fieldId); f[i].type = (int)get(d, k, 3);
    snprintf(k, sizeof k, "field%u.%u", f[i].fieldId, f[i].scopeId); known = has(d, k, &v); /* of one link */
    if (!known) { snprintf(k, sizeof k, "field%u", f[i].fieldId); known = has(d, k, &v); }
    if (!known) { f[i].ret = NOTSUP; continue; }
    f[i].ret = OK; if (f[i].type == 1) f[i].v.ui = (unsigned)v; else f[i].v.ull = (unsigned long long)v; }
  OUT(OK); }
/* events: one event per "xid" bump; ring filled by fake_nvml_push_xid() or gpuN.xid=<code> in the file (edge) */
typedef struct { dev_t_ *dev; unsigned long long type, data; unsigned gi, ci; } ev_t;
static ev_t ring[256]; static long long xid_seen[MAXGPU];
static pthread_cond_t ev_cv = PTHREAD_COND_INITIALIZER;
EXPORT void fake_nvml_push_event(unsigned gpu, unsigned long long type, unsigned long long data) { pthread_mutex_lock(&mu);
  if (registered[gpu] & 8) { ring[ev_tail++ % 256] = (ev_t){&devs[gpu], type, data, ~0u, ~0u}; pthread_cond_broadcast(&ev_cv); } pthread_mutex_unlock(&mu); }
EXPORT void fake_nvml_push_xid(unsigned gpu, unsigned long long xid) { fake_nvml_push_event(gpu, 8, xid); }
EXPORT ret_t nvmlEventSetCreate(void **s) { IN("nvmlEventSetCreate", 0); *s = &ring; OUT(OK); }
EXPORT ret_t nvmlEventSetFree(void *s) { (void)s; IN("nvmlEventSetFree", 0); memset(registered, 0, sizeof registered); ev_head = ev_tail; OUT(OK); }
EXPORT ret_t nvmlDeviceGetSupportedEventTypes(dev_t_ *d, unsigned long long *o) { return u64("nvmlDeviceGetSupportedEventTypes", d, o, "events", 0xF); }
EXPORT ret_t nvmlDeviceRegisterEvents(dev_t_ *d, unsigned long long t, void *s) { (void)s; IN("nvmlDeviceRegisterEvents", d); registered[d->index] |= t; OUT(OK); }
EXPORT ret_t nvmlEventSetWait_v2(void *s, ev_t *e, unsigned ms) { (void)s;
  ret_t r = enter("nvmlEventSetWait_v2", 0); if (r) { pthread_mutex_unlock(&mu); return r; }
  struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_sec += ms / 1000; t.tv_nsec += (ms % 1000) * 1000000L; if (t.tv_nsec >= 1000000000L) { t.tv_sec++; t.tv_nsec -= 1000000000L; }
  for (;;) { if (ev_head != ev_tail) { *e = ring[ev_head++ % 256]; OUT(OK); }
    struct timespec step, now; clock_gettime(CLOCK_REALTIME, &now); step = now; step.tv_nsec += 20000000L; if (step.tv_nsec >= 1000000000L) { step.tv_sec++; step.tv_nsec -= 1000000000L; }
    if (now.tv_sec > t.tv_sec || (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec)) OUT(TIMEOUT);
    pthread_cond_timedwait(&ev_cv, &mu, (step.tv_sec < t.tv_sec || (step.tv_sec == t.tv_sec && step.tv_nsec < t.tv_nsec)) ? &step : &t);
    reload();
    for (unsigned i = 0; i < gcount(); i++) { long long x = get(&devs[i], "xid", 0); if (x != xid_seen[i]) { xid_seen[i] = x; if (x && (registered[i] & 8)) ring[ev_tail++ % 256] = (ev_t){&devs[i], 8, (unsigned long long)x, ~0u, ~0u}; } } } }
/* GPM */
typedef struct { double t; dev_t_ *d; } gs_t;
typedef struct { unsigned id; ret_t ret; double value; char *s, *l, *u; } gm_t;
typedef struct { unsigned version, n; gs_t *s1, *s2; gm_t m[477]; } gget_t;
typedef struct { unsigned version, supported; } gsup_t;
EXPORT ret_t nvmlGpmQueryDeviceSupport(dev_t_ *d, gsup_t *o) { IN("nvmlGpmQueryDeviceSupport", d); o->supported = (unsigned)get(d, "gpm", 1); OUT(OK); }
EXPORT ret_t nvmlGpmSampleAlloc(gs_t **o) { IN("nvmlGpmSampleAlloc", 0); *o = calloc(1, sizeof(gs_t)); OUT(OK); }
EXPORT ret_t nvmlGpmSampleFree(gs_t *s) { IN("nvmlGpmSampleFree", 0); free(s); OUT(OK); }
EXPORT ret_t nvmlGpmSampleGet(dev_t_ *d, gs_t *s) { IN("nvmlGpmSampleGet", d); if (!get(d, "gpm", 1)) OUT(NOTSUP); s->t = elapsed(); s->d = d; OUT(OK); }
EXPORT ret_t nvmlGpmMigSampleGet(dev_t_ *d, unsigned gi, gs_t *s) { IN("nvmlGpmMigSampleGet", d);
  if (!gi || gi > (unsigned)get(d, "mig", 0)) OUT(INVAL);
  s->t = elapsed(); s->d = &migs[d->index][gi - 1]; OUT(OK); }
EXPORT ret_t nvmlGpmMetricsGet(gget_t *g) { IN("nvmlGpmMetricsGet", 0); long long least = 100; find("gpm_min_ms", &least); if (g->version != 1) OUT(VERMISMATCH); if (!g->s1 || !g->s2) OUT(INVAL);
  for (unsigned i = 0; i < g->n; i++) { char k[32]; snprintf(k, 32, "gpm%u_milli", g->m[i].id); long long v = get(g->s2->d, k, -1);
    if (v < 0 || (g->s2->t - g->s1->t) * 1000 < least) { g->m[i].ret = v < 0 ? NOTSUP : 21; g->m[i].value = 0.0 / 0.0; continue; }
    g->m[i].ret = OK; g->m[i].value = v / 1000.0; } OUT(OK); }
EXPORT ret_t nvmlDeviceGetNvLinkState(dev_t_ *d, unsigned l, unsigned *o) { IN("nvmlDeviceGetNvLinkState", d); if (l >= 18) OUT(INVAL); *o = (unsigned)get(d, "nvlink", 1); OUT(OK); }
EXPORT ret_t nvmlDeviceGetNvLinkErrorCounter(dev_t_ *d, unsigned l, int c, unsigned long long *o) { (void)l; (void)c; return u64("nvmlDeviceGetNvLinkErrorCounter", d, o, "nvlink_err", 0); }
EXPORT ret_t nvmlDeviceGetNumGpuCores(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetNumGpuCores", d, o, "cores", 16896); }
EXPORT ret_t nvmlDeviceGetCudaComputeCapability(dev_t_ *d, int *a, int *b) { IN("nvmlDeviceGetCudaComputeCapability", d); *a = (int)get(d, "cc_major", 9); *b = (int)get(d, "cc_minor", 0); OUT(OK); }
EXPORT ret_t nvmlDeviceGetMemoryBusWidth(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetMemoryBusWidth", d, o, "bus_width", 5120); }
EXPORT ret_t nvmlDeviceGetCurrPcieLinkGeneration(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetCurrPcieLinkGeneration", d, o, "pcie_gen", 5); }
EXPORT ret_t nvmlDeviceGetCurrPcieLinkWidth(dev_t_ *d, unsigned *o) { return u32("nvmlDeviceGetCurrPcieLinkWidth", d, o, "pcie_width", 16); }
EXPORT ret_t nvmlDeviceGetEccMode(dev_t_ *d, unsigned *c, unsigned *p) { IN("nvmlDeviceGetEccMode", d); *c = *p = (unsigned)get(d, "ecc", 1); OUT(OK); }
EXPORT ret_t nvmlDeviceGetRetiredPages(dev_t_ *d, int c, unsigned *n, unsigned long long *a) { (void)c; IN("nvmlDeviceGetRetiredPages", d); unsigned have = (unsigned)get(d, "retired", 0), room = *n; *n = have; if (!have) OUT(OK); if (!a || room < have) OUT(TOOSMALL); for (unsigned i = 0; i < have; i++) a[i] = 0x1000 * i; OUT(OK); }
/* The sizes that the binding's structures must have. */
EXPORT unsigned fake_nvml_sizeof(const char *name) {
  struct { const char *name; unsigned size; } all[] = {{"nvmlPciInfo_t", sizeof(pci_t)}, {"c_nvmlMemory_v2_t", sizeof(mem2_t)},
    {"c_nvmlFieldValue_t", sizeof(field_t)}, {"c_nvmlEventData_t", sizeof(ev_t)}, {"c_nvmlGpmMetric_t", sizeof(gm_t)},
    {"c_nvmlGpmMetricsGet_t", sizeof(gget_t)}, {"c_nvmlDeviceAttributes", sizeof(attrs_t)}};
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) if (!strcmp(all[i].name, name)) return all[i].size;
  return 0; }
