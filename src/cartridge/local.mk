# cartridge: sources of this layer
