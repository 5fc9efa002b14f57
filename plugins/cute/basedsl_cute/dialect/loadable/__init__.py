"""Where the bindings look for a Python module for each dialect they meet; see `cute` in here."""
