# train: sources of this layer
