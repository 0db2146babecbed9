# formats: sources of this layer
