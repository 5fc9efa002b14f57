"""`base_dsl.tvm_ffi_builder`: has `spec`."""
