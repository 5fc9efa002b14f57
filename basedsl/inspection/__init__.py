"""Looking into a compilation: programs loaded from files, records of stages, installed tools."""
