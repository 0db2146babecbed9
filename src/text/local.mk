# text: sources of this layer
