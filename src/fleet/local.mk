# fleet: sources of this layer
