# formats
