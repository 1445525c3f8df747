/* Lines of pooling windows for one instruction set; exports one table. */
#include <string.h>
#include "isa.h"
#include "pool_loops.h"
#include "shuffles.h"
#include "simd.h"

#define INLINE static inline __attribute__((always_inline))
#define NAME(x) TF_JOIN(x, TAG)
#define TAG f16
#define S uint16_t
#define K int32_t
#define EVEN TF_OF_4(TF_EVEN)
#define KU uint32_t
#define INF 0x7c00
#define QUIET 0x7e00
#include "pool_lines.h"
#undef TAG
#undef S
#undef K
#undef EVEN
#undef KU
#undef INF
#undef QUIET

#define TAG bf16
#define S uint16_t
#define K int32_t
#define EVEN TF_OF_4(TF_EVEN)
#define KU uint32_t
#define INF 0x7f80
#define QUIET 0x7fc0
#include "pool_lines.h"
#undef TAG
#undef S
#undef K
#undef EVEN
#undef KU
#undef INF
#undef QUIET

#define TAG f32
#define S uint32_t
#define K int32_t
#define EVEN TF_OF_4(TF_EVEN)
#define KU uint32_t
#define INF 0x7f800000
#define QUIET 0x7fc00000
#include "pool_lines.h"
#undef TAG
#undef S
#undef K
#undef EVEN
#undef KU
#undef INF
#undef QUIET

#define TAG f64
#define S uint64_t
#define K int64_t
#define EVEN TF_OF_8(TF_EVEN)
#define KU uint64_t
#define INF 0x7ff0000000000000
#define QUIET 0x7ff8000000000000
#include "pool_lines.h"
#undef TAG
#undef S
#undef K
#undef EVEN
#undef KU
#undef INF
#undef QUIET

#define SUM
#define TAG float
#define T float
#include "pool_lines.h"
#include "pool_tiles.h"
#undef TAG
#undef T

#define TAG double
#define T double
#include "pool_lines.h"
#include "pool_tiles.h"
#undef TAG
#undef T

#define MAX_OF(tag, item, key) {lowest_##tag, line_##tag, end_##tag, windows_##tag, item, key}
#define SUM_OF(T) {begin_##T, add_##T, wide_##T, divide_##T, spread_##T}
#define TILE_OF(T) {lift_##T, lower_##T, join_##T, share_##T}
const tf_pool_table TF_NAME(tf_pool) = {
    {MAX_OF(f16, 2, 4), MAX_OF(bf16, 2, 4), MAX_OF(f32, 4, 4), MAX_OF(f64, 8, 8)},
    {SUM_OF(float), SUM_OF(double)},
    {TILE_OF(float), TILE_OF(double)}};
