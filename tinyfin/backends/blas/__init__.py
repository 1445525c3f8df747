"""Backend `blas`: the host, with matrix products and convolutions by a CBLAS library."""
