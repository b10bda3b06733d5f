# find_package(kvproof) and kvproof::engine for programs that use the engine as a library.
