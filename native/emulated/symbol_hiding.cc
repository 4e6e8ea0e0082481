// CUDASHM_EMULATED_HIDE: an older driver lacks newer symbols, and programs find that out with dlsym. So the hidden
// functions are struck from this library's own symbol table while it is being loaded, before any dlsym can run;
// the file on disk stays as it is. Linked with --hash-style=both, because DT_HASH says how many symbols there are.

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "environment.h"

extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start;

namespace cudashm::emulated {
namespace {

struct SymbolTable {
  ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  uint32_t count = 0;
};

SymbolTable own_symbols() {
  const auto base = reinterpret_cast<ElfW(Addr)>(&__ehdr_start);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + __ehdr_start.e_phoff);
  const ElfW(Dyn)* entry = nullptr;
  for (int index = 0; index < __ehdr_start.e_phnum; ++index) {
    if (segments[index].p_type == PT_DYNAMIC) {
      entry = reinterpret_cast<const ElfW(Dyn)*>(base + segments[index].p_vaddr);
    }
  }
  SymbolTable table;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    // glibc has turned the offsets into addresses already, musl leaves them.
    const ElfW(Addr) address = entry->d_un.d_ptr < base ? base + entry->d_un.d_ptr : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) table.symbols = reinterpret_cast<ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) table.names = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_HASH) table.count = reinterpret_cast<const uint32_t*>(address)[1];
  }
  return table;
}

void strike(ElfW(Sym)& symbol) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(&symbol) / page * page;
  const size_t size = reinterpret_cast<uintptr_t>(&symbol + 1) - first;
  if (mprotect(reinterpret_cast<void*>(first), size, PROT_READ | PROT_WRITE) != 0) return;
  symbol.st_shndx = SHN_UNDEF;
  symbol.st_value = 0;
  mprotect(reinterpret_cast<void*>(first), size, PROT_READ);
}

__attribute__((constructor)) void hide_symbols() {
  const SymbolTable table = own_symbols();
  for (uint32_t index = 0; index < table.count; ++index) {
    const auto function = find_function(table.names + table.symbols[index].st_name);
    if (function && hidden_functions().hidden[static_cast<unsigned>(*function)]) strike(table.symbols[index]);
  }
}

}  // namespace
}  // namespace cudashm::emulated
