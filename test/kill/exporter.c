// An exporter of many allocations. Its argument is the driver library; it is told what to do by lines of JSON on
// standard input and answers each with one: {"allocate":[DEVICE,BYTES,SEED]} with the handle in hex, {"free":[NUMBER]}
// with nothing. Allocations are numbered from 0. Byte i of one is (SEED * 31 + i * 7 + i / 256) % 256.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long device_pointer;
typedef struct {
  unsigned char bytes[64];
} ipc_handle;

enum { max_allocations = 65536, max_devices = 16 };

static int (*init)(unsigned);
static int (*count_devices)(int *);
static int (*retain)(void **, int);
static int (*set_current)(void *);
static int (*allocate)(device_pointer *, size_t);
static int (*release)(device_pointer);
static int (*to_device)(device_pointer, const void *, size_t);
static int (*get_handle)(ipc_handle *, device_pointer);

static void *contexts[max_devices];
static device_pointer allocations[max_allocations];
static int allocation_count;

static void check(int result, const char *what) {
  if (result == 0) return;
  fprintf(stderr, "%s: CUDA error %d\n", what, result);
  exit(1);
}

static void load(const char *path) {
  void *driver = dlopen(path, RTLD_NOW);
  if (driver == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  init = dlsym(driver, "cuInit");
  count_devices = dlsym(driver, "cuDeviceGetCount");
  retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  set_current = dlsym(driver, "cuCtxSetCurrent");
  allocate = dlsym(driver, "cuMemAlloc_v2");
  release = dlsym(driver, "cuMemFree_v2");
  to_device = dlsym(driver, "cuMemcpyHtoD_v2");
  get_handle = dlsym(driver, "cuIpcGetMemHandle");
}

static void do_allocate(int device, size_t bytes, unsigned seed) {
  if (allocation_count == max_allocations) check(2, "allocate");
  check(set_current(contexts[device]), "cuCtxSetCurrent");
  device_pointer *memory = &allocations[allocation_count++];
  check(allocate(memory, bytes), "cuMemAlloc");
  unsigned char *pattern = malloc(bytes);
  for (size_t i = 0; i < bytes; i++) pattern[i] = (unsigned char)(seed * 31 + i * 7 + i / 256);
  check(to_device(*memory, pattern, bytes), "cuMemcpyHtoD");
  free(pattern);
  ipc_handle handle;
  check(get_handle(&handle, *memory), "cuIpcGetMemHandle");
  printf("{\"handle\":\"");
  for (size_t i = 0; i < sizeof handle.bytes; i++) printf("%02x", handle.bytes[i]);
  printf("\"}\n");
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  load(arguments[1]);
  check(init(0), "cuInit");
  int devices = 0;
  check(count_devices(&devices), "cuDeviceGetCount");
  for (int i = 0; i < devices && i < max_devices; i++) check(retain(&contexts[i], i), "cuDevicePrimaryCtxRetain");
  setvbuf(stdout, NULL, _IOLBF, 0);
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL) {
    int device, number;
    size_t bytes;
    unsigned seed;
    if (sscanf(line, "{\"allocate\":[%d,%zu,%u]}", &device, &bytes, &seed) == 3) {
      do_allocate(device, bytes, seed);
    } else if (sscanf(line, "{\"free\":[%d]}", &number) == 1) {
      check(release(allocations[number]), "cuMemFree");
      printf("{}\n");
    } else {
      return 2;
    }
  }
  return 0;
}
