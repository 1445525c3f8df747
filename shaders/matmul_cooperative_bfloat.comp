/* Products of matrices of bfloat16 in tiles of ROWS x COLS; layouts as in matmul.comp, with eight in place of four.
 *
 * operands: out a b bias
 * words: uint m; uint n; uint k; int a_row; int a_k; int b_k; int b_col; int out_row; int out_col;
 *   int bias_row; int bias_col; uint batch; uint shape[3]; int step[8]
 * constants: COMPUTE ROWS=64 COLS=64 A_LAYOUT B_LAYOUT OUT_EIGHT
 * group: 256
 * numbers: float
 * needs: cooperative_matrix bfloat16
 */
#ifdef TF_VULKAN
#define HALF bfloat16_t
#include "matmul_cooperative.glsl"
#else
void main() {}
#endif
