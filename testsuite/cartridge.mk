# cartridge
