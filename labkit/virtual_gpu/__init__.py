"""A GPU to play with, without a GPU: torch.cuda's own names on the virtual device.

gpu = labkit.VirtualGPU()
s = gpu.Stream()
x = gpu.zeros(4, device="cuda")
with gpu.stream(s):
    x.add_(1)
print(gpu.timeline())
"""

from labkit.virtual_gpu.gpu import VirtualGPU

__all__ = ["VirtualGPU"]
