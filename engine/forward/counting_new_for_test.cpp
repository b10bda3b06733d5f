#include "engine/forward/counting_new_for_test.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

// Every operator new of this program counts; the others (array, nothrow) end up in these two.

namespace {
std::atomic<std::size_t> calls{0};
}

std::size_t kvproof::test::allocations() noexcept { return calls; }

void* operator new(std::size_t size) {
  ++calls;
  if (void* made = std::malloc(size == 0 ? 1 : size)) return made;
  throw std::bad_alloc();
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  ++calls;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* made = std::aligned_alloc(align, (size + align) / align * align)) return made;
  throw std::bad_alloc();
}

void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }
