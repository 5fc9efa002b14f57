"""Names and import paths of CuTe's Python DSL that have no other place here."""
