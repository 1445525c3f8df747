"""The modules of rows, in the order in which operations are numbered."""

MODULES = (
    "convert",
    "elementwise",
    "activation",
    "view",
    "reduce",
    "index",
    "resize",
    "join",
    "random",
    "matmul",
    "conv",
    "norm",
    "groupnorm",
    "loss",
    "attention",
    "recurrent",
    "step",
)
