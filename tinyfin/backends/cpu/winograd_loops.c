/* Winograd's transforms for one instruction set; exports one table. */
#include "isa.h"
#include "simd.h"
#include "shuffles.h"
#include "winograd_loops.h"

#define T float
#include "winograd_tiles.inc"
#undef T
#define T double
#include "winograd_tiles.inc"
#undef T

const tf_winograd_table TF_NAME(tf_winograd) = {
    {KIND(float, 2), KIND(float, 4)},
    {KIND(double, 2), KIND(double, 4)},
};
