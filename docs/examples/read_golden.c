/* Prints a golden file: each step's op, and beside it each tensor's shape and first value. C99, no library.
   Every length is checked against the bytes at hand before it is used; little-endian machines only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxRank = 8, kMaxName = 64 };

typedef struct { const char *at, *end; } Text; /* what is left to read */
typedef struct { char name[kMaxName], dtype[8]; uint64_t shape[kMaxRank], rank, begin, end; } Tensor;

static void fail(const char *what) {
  fprintf(stderr, "read_golden: %s\n", what);
  exit(3);
}

static char peek(Text *t) { /* the next character that is no space */
  while (t->at < t->end && strchr(" \n\r\t", *t->at)) ++t->at;
  return t->at < t->end ? *t->at : '\0';
}

static int accept(Text *t, char c) { return peek(t) == c ? (++t->at, 1) : 0; }

static void expect(Text *t, char c) {
  if (!accept(t, c)) fail("malformed JSON");
}

/* Reads a string, keeping at most `room` - 1 bytes; goldens escape nothing but quotes and backslashes. */
static size_t string(Text *t, char *out, size_t room) {
  size_t n = 0;
  expect(t, '"');
  for (; t->at < t->end && *t->at != '"'; ++t->at, ++n) {
    if (*t->at == '\\' && ++t->at == t->end) break;
    if (n + 1 < room) out[n] = *t->at;
  }
  if (t->at++ >= t->end) fail("a string does not end");
  if (room) out[n < room ? n : room - 1] = '\0';
  return n;
}

static uint64_t number(Text *t) {
  uint64_t value = 0;
  if (peek(t) < '0' || peek(t) > '9') fail("expected a whole number");
  for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; ++t->at) {
    if (value > (UINT64_MAX - 9) / 10) fail("a number is too large");
    value = value * 10 + (uint64_t)(*t->at - '0');
  }
  return value;
}

static uint64_t numbers(Text *t, uint64_t *out, uint64_t room) {
  uint64_t n = 0;
  expect(t, '[');
  while (!accept(t, ']')) {
    if (n == room) fail("a list is too long");
    out[n++] = number(t);
    accept(t, ',');
  }
  return n;
}

static void skip(Text *t) { /* any value, nested ones without recursion */
  int depth = 0;
  do {
    char c = peek(t);
    if (c == '"') string(t, NULL, 0);
    else if (c == '\0') fail("the JSON text ends too early");
    else ++t->at, depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (!depth && c != '"' && c != '}' && c != ']') /* a bare number or word */
      while (t->at < t->end && !strchr(",]}", *t->at)) ++t->at;
  } while (depth);
}

static int next_key(Text *t, char *key) { /* inside an object: the next member's name, or 0 at its end */
  accept(t, ',');
  if (accept(t, '}')) return 0;
  string(t, key, kMaxName);
  expect(t, ':');
  return 1;
}

static Tensor tensor(Text *t, const char *name, uint64_t bytes) {
  Tensor v = {{0}, {0}, {0}, 0, 0, 0};
  char key[kMaxName];
  uint64_t offsets[2] = {1, 0}, size;
  memcpy(v.name, name, kMaxName);
  expect(t, '{');
  while (next_key(t, key)) {
    if (!strcmp(key, "dtype")) string(t, v.dtype, sizeof v.dtype);
    else if (!strcmp(key, "shape")) v.rank = numbers(t, v.shape, kMaxRank);
    else if (!strcmp(key, "data_offsets")) numbers(t, offsets, 2);
    else fail("unknown field of a tensor");
  }
  v.begin = offsets[0], v.end = offsets[1];
  if (v.begin > v.end || v.end > bytes) fail("a tensor lies outside the file");
  size = !strcmp(v.dtype, "U8") ? 1 : !strcmp(v.dtype, "F32") ? 4 : 8;
  for (uint64_t i = 0; i < v.rank; ++i) {
    if (v.shape[i] && size > UINT64_MAX / v.shape[i]) fail("a shape overflows");
    size *= v.shape[i];
  }
  if (size != v.end - v.begin) fail("a shape does not fit its bytes");
  return v;
}

static void show(const Tensor *v, const char *data) {
  double d = 0;
  float f = 0;
  int64_t i = 0;
  printf("  %s (", v->name);
  for (uint64_t k = 0; k < v->rank; ++k) printf("%s%" PRIu64, k ? ", " : "", v->shape[k]);
  printf(")");
  data += v->begin;
  if (v->begin == v->end) printf("\n");
  else if (!strcmp(v->dtype, "F64")) memcpy(&d, data, sizeof d), printf(" %.9g\n", d);
  else if (!strcmp(v->dtype, "F32")) memcpy(&f, data, sizeof f), printf(" %.9g\n", (double)f);
  else if (!strcmp(v->dtype, "I64")) memcpy(&i, data, sizeof i), printf(" %" PRId64 "\n", i);
  else if (!strcmp(v->dtype, "U8")) printf(" %d\n", (unsigned char)*data);
  else fail("unknown dtype");
}

static void show_trace(Text t, const Tensor *tensors, size_t count, const char *data) {
  char key[kMaxName], op[kMaxName], error[kMaxName], prefix[kMaxName];
  expect(&t, '[');
  for (size_t step = 0; !accept(&t, ']'); ++step, accept(&t, ',')) {
    strcpy(error, "accepted");
    expect(&t, '{');
    while (next_key(&t, key)) {
      if (!strcmp(key, "op")) string(&t, op, sizeof op);
      else if (!strcmp(key, "error")) string(&t, error, sizeof error);
      else skip(&t);
    }
    printf("%zu %s %s\n", step, op, error);
    snprintf(prefix, sizeof prefix, "step.%zu.", step);
    for (size_t i = 0; i < count; ++i)
      if (!strncmp(tensors[i].name, prefix, strlen(prefix))) show(&tensors[i], data);
  }
}

static char *document(Text *t, size_t room) { /* the one metadata key, itself JSON inside a JSON string */
  char key[kMaxName], *text = malloc(room);
  expect(t, '{');
  if (!text || !next_key(t, key) || strcmp(key, "kvproof")) fail("no kvproof document");
  string(t, text, room);
  expect(t, '}');
  return text;
}

static void show_golden(Text head, const char *data, uint64_t bytes) {
  char key[kMaxName], suite[256] = "", format[kMaxName] = "", *text = NULL;
  size_t count = 0, room = (size_t)(head.end - head.at);
  uint64_t version[2] = {0, 0}, total = 0;
  Tensor *tensors = malloc((room / 16 + 1) * sizeof *tensors); /* no entry is shorter than 16 characters */
  if (!tensors) fail("out of memory");
  expect(&head, '{');
  while (next_key(&head, key)) {
    if (!strcmp(key, "__metadata__")) {
      text = document(&head, room + 1);
      continue;
    }
    tensors[count] = tensor(&head, key, bytes); /* our writer lists them in the order of their bytes */
    if (tensors[count].begin != total) fail("a hole or an overlap");
    total = tensors[count++].end;
  }
  if (!text || total != bytes) fail("no document, or bytes that belong to no tensor");
  Text t = {text, text + strlen(text)}, trace = {NULL, NULL};
  expect(&t, '{');
  while (next_key(&t, key)) {
    if (!strcmp(key, "format")) string(&t, format, sizeof format);
    else if (!strcmp(key, "version")) numbers(&t, version, 2);
    else if (!strcmp(key, "suite")) string(&t, suite, sizeof suite);
    else if (!strcmp(key, "trace")) trace = t, skip(&t);
    else skip(&t);
  }
  if (strcmp(format, "kvproof-golden") || version[0] != 1) fail("expected kvproof-golden version 1");
  printf("%s\n", suite);
  show_trace(trace, tensors, count, data);
  free(text), free(tensors);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    FILE *file = fopen(argv[i], "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail("cannot open the file");
    long size = ftell(file);
    char *bytes = size >= 8 ? malloc((size_t)size) : NULL;
    rewind(file);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) fail("cannot read the file");
    uint64_t length, rest = (uint64_t)size - 8;
    memcpy(&length, bytes, 8);
    if (length > rest) fail("the header is longer than the file");
    show_golden((Text){bytes + 8, bytes + 8 + length}, bytes + 8 + length, rest - length);
    free(bytes), fclose(file);
  }
  return 0;
}
