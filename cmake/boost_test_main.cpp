#define BOOST_TEST_MODULE KVPROOF_TEST_NAME
#include <boost/test/unit_test.hpp>
