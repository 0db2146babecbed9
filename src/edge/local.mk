# edge: sources of this layer
