# sources: sources of this layer
