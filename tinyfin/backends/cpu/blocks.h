/* The canonical order of sums: how many elements a block has, and how many lanes. */
#ifndef TF_BLOCKS_H
#define TF_BLOCKS_H

#define TF_BLOCK 2048
#define TF_SUM_LANES 64

#endif
