# serve: sources of this layer
