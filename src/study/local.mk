# study: sources of this layer
