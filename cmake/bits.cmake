# Flags that are part of the correctness: every object that holds arithmetic of an optimizer is
# compiled with them. See docs/determinism.md before changing one.
set(LARGO_BITS_FLAGS
    -fno-fast-math       # first: it would reset what follows
    -ffp-contract=off    # a fused operation is fused only where the source says fmaf
    -fno-math-errno      # sqrtf is one instruction, and vectorizes
    -fno-trapping-math   # selects may be computed on both sides
    -fno-lto)
