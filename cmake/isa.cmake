# The instruction sets of the CPU kernels: name and flags. cpu/kernels.c is compiled once for each.
# A row here needs its twin in cpu/isa.def (name and run-time test).
set(LARGO_ISAS scalar)
set(LARGO_ISA_FLAGS_scalar "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    list(APPEND LARGO_ISAS avx2 avx512)
    set(LARGO_ISA_FLAGS_avx2 -mavx2 -mfma)
    set(LARGO_ISA_FLAGS_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma
                               -mprefer-vector-width=512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    list(APPEND LARGO_ISAS neon)
    set(LARGO_ISA_FLAGS_scalar -fno-tree-vectorize) # NEON is in the baseline
    set(LARGO_ISA_FLAGS_neon "")
endif()
