# commands: sources of this layer
