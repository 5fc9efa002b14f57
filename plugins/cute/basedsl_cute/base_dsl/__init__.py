"""`base_dsl`: where CuTe's DSL keeps what other modules of this package have."""
