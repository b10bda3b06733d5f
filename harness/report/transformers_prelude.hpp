#pragma once
#include <string_view>

namespace kvproof::harness {

/// The parts of an emitted script that do not depend on the trace (docs/emit.md). Python; needs torch, transformers and numpy.
extern const std::string_view kPythonVerdict;      ///< shown(), not_shown(), ids(), same_bits()
extern const std::string_view kPythonGenerated;    ///< make_model(source, attention, dtype): weights from a seed
extern const std::string_view kPythonFolder;       ///< the same from a folder
extern const std::string_view kPythonRecompute;    ///< recompute(), compare(): what is right, without a cache, in double precision
extern const std::string_view kPythonMisuse;       ///< must_refuse()
extern const std::string_view kPythonState;        ///< state_of(), must_be_unchanged()
extern const std::string_view kPythonCrop;         ///< crop(): two conventions of one sign
extern const std::string_view kPythonGather;       ///< gather(): two methods for one op
extern const std::string_view kPythonStore;        ///< store(), restore()
extern const std::string_view kPythonLength;       ///< must_be_length()
extern const std::string_view kPythonRead;         ///< read()
extern const std::string_view kPythonCompareRead;  ///< compare_read(); needs recompute()
extern const std::string_view kPythonSameColumns;  ///< must_be_same_columns()
extern const std::string_view kPythonBits;         ///< must_be_same_bits()
extern const std::string_view kPythonGreedy;       ///< must_be_greedy()
extern const std::string_view kPythonMain;         ///< main() with the arguments, and what an exception means

}  // namespace kvproof::harness
