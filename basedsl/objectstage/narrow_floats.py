"""Conversions between narrow floats and float or double that LLVM calls by name.

They belong to the compiler's run-time library, but `libgcc_s` has those for bfloat16 only since
GCC 13. These are ours, in LLVM IR: rounding to nearest even, quiet NaNs, subnormals included.
From double, the value is first rounded to odd in float, so that it is rounded once.
"""

from __future__ import annotations

NAMES = frozenset({"__truncsfbf2", "__truncdfbf2", "__truncsfhf2", "__truncdfhf2", "__extendhfsf2"})

# The half conversions follow Fabian Giesen's float_to_half_fast3_rtne and half_to_float.
LLVMIR = """
define internal i16 @bfloat_bits(i32 %b) alwaysinline {
  %abs = and i32 %b, 2147483647
  %nan = icmp ugt i32 %abs, 2139095040
  %high = lshr i32 %b, 16
  %quiet = or i32 %high, 64
  %odd = and i32 %high, 1
  %bias = add i32 %odd, 32767
  %sum = add i32 %b, %bias
  %rounded = lshr i32 %sum, 16
  %r = select i1 %nan, i32 %quiet, i32 %rounded
  %t = trunc i32 %r to i16
  ret i16 %t
}

define internal i16 @half_bits(i32 %b) alwaysinline {
  %abs = and i32 %b, 2147483647
  %signed = lshr i32 %b, 16
  %sign = and i32 %signed, 32768
  %nan = icmp ugt i32 %abs, 2139095040
  %payload = lshr i32 %abs, 13
  %payload10 = and i32 %payload, 1023
  %quiet = or i32 %payload10, 32256
  %big = icmp uge i32 %abs, 1199570944
  %small = icmp ult i32 %abs, 947912704
  %f = bitcast i32 %abs to float
  %shifted = fadd float %f, 5.000000e-01
  %sub = bitcast float %shifted to i32
  %subnormal = sub i32 %sub, 1056964608
  %low = lshr i32 %abs, 13
  %odd = and i32 %low, 1
  %rebiased = add i32 %abs, 3355447295
  %up = add i32 %rebiased, %odd
  %normal = lshr i32 %up, 13
  %finite = select i1 %small, i32 %subnormal, i32 %normal
  %capped = select i1 %big, i32 31744, i32 %finite
  %magnitude = select i1 %nan, i32 %quiet, i32 %capped
  %r = or i32 %magnitude, %sign
  %t = trunc i32 %r to i16
  ret i16 %t
}

define internal i32 @odd_float_bits(double %d) alwaysinline {
  %f = fptrunc double %d to float
  %bits = bitcast float %f to i32
  %back = fpext float %f to double
  %inexact = fcmp one double %back, %d
  %a = call double @llvm.fabs.f64(double %back)
  %b = call double @llvm.fabs.f64(double %d)
  %over = fcmp ogt double %a, %b
  %over32 = zext i1 %over to i32
  %towards0 = sub i32 %bits, %over32
  %odd = or i32 %towards0, 1
  %r = select i1 %inexact, i32 %odd, i32 %bits
  ret i32 %r
}

declare double @llvm.fabs.f64(double)

define bfloat @__truncsfbf2(float %x) {
  %b = bitcast float %x to i32
  %i = call i16 @bfloat_bits(i32 %b)
  %r = bitcast i16 %i to bfloat
  ret bfloat %r
}

define bfloat @__truncdfbf2(double %x) {
  %b = call i32 @odd_float_bits(double %x)
  %i = call i16 @bfloat_bits(i32 %b)
  %r = bitcast i16 %i to bfloat
  ret bfloat %r
}

define half @__truncsfhf2(float %x) {
  %b = bitcast float %x to i32
  %i = call i16 @half_bits(i32 %b)
  %r = bitcast i16 %i to half
  ret half %r
}

define half @__truncdfhf2(double %x) {
  %b = call i32 @odd_float_bits(double %x)
  %i = call i16 @half_bits(i32 %b)
  %r = bitcast i16 %i to half
  ret half %r
}

define float @__extendhfsf2(half %h) {
  %i = bitcast half %h to i16
  %w = zext i16 %i to i32
  %abs = and i32 %w, 32767
  %m = shl i32 %abs, 13
  %exp = and i32 %m, 260046848
  %rebiased = add i32 %m, 939524096
  %special = icmp eq i32 %exp, 260046848
  %inf = add i32 %m, 1879048192
  %zero = icmp eq i32 %exp, 0
  %scaled = add i32 %m, 947912704
  %s = bitcast i32 %scaled to float
  %renormal = fsub float %s, 0x3F10000000000000
  %subnormal = bitcast float %renormal to i32
  %n = select i1 %special, i32 %inf, i32 %rebiased
  %v = select i1 %zero, i32 %subnormal, i32 %n
  %nan = icmp ugt i32 %abs, 31744
  %quiet = or i32 %v, 4194304
  %q = select i1 %nan, i32 %quiet, i32 %v
  %sign = and i32 %w, 32768
  %sign32 = shl i32 %sign, 16
  %r = or i32 %q, %sign32
  %f = bitcast i32 %r to float
  ret float %f
}
"""
