# How every target of the project is compiled. Private to the build tree: no consumer inherits a warning or an error flag.
add_library(kvproof_options INTERFACE)
target_compile_features(kvproof_options INTERFACE cxx_std_20)
target_compile_options(kvproof_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-missing-field-initializers  # a designated initialiser leaves the other fields at their defaults on purpose
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>  # g++ 12 sees one in every copy of a std::optional<std::string>
  -ffp-contract=off  # the same seed gives the same bits on every processor
  $<$<BOOL:${KVPROOF_WERROR}>:-Werror>)
