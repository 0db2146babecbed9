# model: sources of this layer
