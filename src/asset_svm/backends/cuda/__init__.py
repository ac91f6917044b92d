"""One NVIDIA card: PyTorch for memory and matrix products, kernels of our own for the steps.

The only package that imports torch, and the extra ``cuda`` is all it needs. Kernels are CUDA C++,
compiled at run time by NVRTC, the compiler library that PyTorch brings; Triton would need a C compiler
on the user's machine for its launchers, and has no words for one warp that passes numbers on.
"""
