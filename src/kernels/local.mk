# kernels: sources of this layer
