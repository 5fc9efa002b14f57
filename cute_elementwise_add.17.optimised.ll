source_filename = "LLVMDialectModule"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@basedsl_assertion_2 = private constant [53 x i8] c"/tmp/clients14/perf/progs.py\1F38\1F4\1F\1F\1F[]\1Flaunch failed\00"
@basedsl_assertion_1 = private constant [112 x i8] c"/tmp/clients14/perf/ir.py\1F4\1F2\1F\1F\1F[]\1FValueError: an extent of 'mC' differs from that of 'mA' with the same symbol\00"
@basedsl_assertion_0 = private constant [112 x i8] c"/tmp/clients14/perf/ir.py\1F4\1F2\1F\1F\1F[]\1FValueError: an extent of 'mB' differs from that of 'mA' with the same symbol\00"
@basedsl_launcher = external global i8

declare void @basedsl_assertion_failed(ptr) local_unnamed_addr

declare i32 @basedsl_launch(ptr, ptr, ptr) local_unnamed_addr

define void @cute_elementwise_add(ptr %0, i32 %1, i32 %2, i32 %3, ptr %4, i32 %5, i32 %6, i32 %7, ptr %8, i32 %9, i32 %10, i32 %11) local_unnamed_addr {
  %13 = alloca i32, align 4
  %14 = alloca i32, align 4
  %15 = alloca i32, align 4
  %16 = alloca i32, align 4
  %17 = alloca i32, align 4
  %18 = alloca i32, align 4
  %19 = alloca i32, align 4
  %20 = alloca i32, align 4
  %21 = alloca ptr addrspace(1), align 8
  %22 = alloca i32, align 4
  %23 = alloca i32, align 4
  %24 = alloca i32, align 4
  %25 = alloca i32, align 4
  %26 = alloca ptr addrspace(1), align 8
  %27 = alloca i32, align 4
  %28 = alloca i32, align 4
  %29 = alloca i32, align 4
  %30 = alloca i32, align 4
  %31 = alloca ptr addrspace(1), align 8
  %32 = alloca [19 x ptr], align 8
  %33 = alloca [18 x i64], align 8
  %34 = icmp eq i32 %1, %5
  br i1 %34, label %35, label %79

35:                                               ; preds = %12
  %36 = icmp eq i32 %2, %6
  br i1 %36, label %37, label %80

37:                                               ; preds = %35
  %38 = icmp eq i32 %1, %9
  br i1 %38, label %39, label %81

39:                                               ; preds = %37
  %40 = icmp eq i32 %2, %10
  br i1 %40, label %41, label %82

41:                                               ; preds = %39
  %42 = add i32 %1, 15
  %43 = lshr i32 %42, 4
  %44 = shl i32 %3, 4
  %45 = add i32 %2, 127
  %46 = lshr i32 %45, 7
  %47 = shl i32 %7, 4
  %48 = shl i32 %11, 4
  %49 = mul i32 %46, %43
  %50 = sext i32 %49 to i64
  %51 = addrspacecast ptr %0 to ptr addrspace(1)
  %52 = addrspacecast ptr %4 to ptr addrspace(1)
  %53 = addrspacecast ptr %8 to ptr addrspace(1)
  store i64 %50, ptr %33, align 8
  %54 = getelementptr inbounds nuw i8, ptr %33, i64 8
  store <4 x i64> <i64 1, i64 1, i64 128, i64 1>, ptr %54, align 8
  %55 = getelementptr inbounds nuw i8, ptr %33, i64 40
  store i64 1, ptr %55, align 8
  %56 = getelementptr inbounds nuw i8, ptr %33, i64 48
  %57 = getelementptr inbounds nuw i8, ptr %33, i64 104
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(56) %56, i8 0, i64 56, i1 false)
  store i64 19, ptr %57, align 8
  %58 = getelementptr inbounds nuw i8, ptr %33, i64 112
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(32) %58, i8 0, i64 32, i1 false)
  store ptr addrspace(1) %51, ptr %31, align 8
  store ptr %31, ptr %32, align 8
  store i32 %43, ptr %30, align 4
  %59 = getelementptr inbounds nuw i8, ptr %32, i64 8
  store ptr %30, ptr %59, align 8
  store i32 %46, ptr %29, align 4
  %60 = getelementptr inbounds nuw i8, ptr %32, i64 16
  store ptr %29, ptr %60, align 8
  store i32 %3, ptr %28, align 4
  %61 = getelementptr inbounds nuw i8, ptr %32, i64 24
  store ptr %28, ptr %61, align 8
  store i32 %44, ptr %27, align 4
  %62 = getelementptr inbounds nuw i8, ptr %32, i64 32
  store ptr %27, ptr %62, align 8
  store ptr addrspace(1) %52, ptr %26, align 8
  %63 = getelementptr inbounds nuw i8, ptr %32, i64 40
  store ptr %26, ptr %63, align 8
  store i32 %43, ptr %25, align 4
  %64 = getelementptr inbounds nuw i8, ptr %32, i64 48
  store ptr %25, ptr %64, align 8
  store i32 %46, ptr %24, align 4
  %65 = getelementptr inbounds nuw i8, ptr %32, i64 56
  store ptr %24, ptr %65, align 8
  store i32 %7, ptr %23, align 4
  %66 = getelementptr inbounds nuw i8, ptr %32, i64 64
  store ptr %23, ptr %66, align 8
  store i32 %47, ptr %22, align 4
  %67 = getelementptr inbounds nuw i8, ptr %32, i64 72
  store ptr %22, ptr %67, align 8
  store ptr addrspace(1) %53, ptr %21, align 8
  %68 = getelementptr inbounds nuw i8, ptr %32, i64 80
  store ptr %21, ptr %68, align 8
  store i32 %43, ptr %20, align 4
  %69 = getelementptr inbounds nuw i8, ptr %32, i64 88
  store ptr %20, ptr %69, align 8
  store i32 %46, ptr %19, align 4
  %70 = getelementptr inbounds nuw i8, ptr %32, i64 96
  store ptr %19, ptr %70, align 8
  store i32 %11, ptr %18, align 4
  %71 = getelementptr inbounds nuw i8, ptr %32, i64 104
  store ptr %18, ptr %71, align 8
  store i32 %48, ptr %17, align 4
  %72 = getelementptr inbounds nuw i8, ptr %32, i64 112
  store ptr %17, ptr %72, align 8
  store i32 %43, ptr %16, align 4
  %73 = getelementptr inbounds nuw i8, ptr %32, i64 120
  store ptr %16, ptr %73, align 8
  store i32 %46, ptr %15, align 4
  %74 = getelementptr inbounds nuw i8, ptr %32, i64 128
  store ptr %15, ptr %74, align 8
  store i32 %1, ptr %14, align 4
  %75 = getelementptr inbounds nuw i8, ptr %32, i64 136
  store ptr %14, ptr %75, align 8
  store i32 %2, ptr %13, align 4
  %76 = getelementptr inbounds nuw i8, ptr %32, i64 144
  store ptr %13, ptr %76, align 8
  %77 = call i32 @basedsl_launch(ptr nonnull @basedsl_launcher, ptr nonnull %33, ptr nonnull %32)
  %78 = icmp eq i32 %77, 0
  br i1 %78, label %common.ret, label %83

common.ret:                                       ; preds = %83, %82, %81, %80, %79, %41
  ret void

79:                                               ; preds = %12
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_0)
  br label %common.ret

80:                                               ; preds = %35
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_0)
  br label %common.ret

81:                                               ; preds = %37
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_1)
  br label %common.ret

82:                                               ; preds = %39
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_1)
  br label %common.ret

83:                                               ; preds = %41
  call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_2)
  br label %common.ret
}

define void @cute_elementwise_add__entry(ptr readonly captures(none) %slots) local_unnamed_addr {
  %a0 = load ptr, ptr %slots, align 8
  %a1.at = getelementptr i8, ptr %slots, i64 8
  %a1 = load i32, ptr %a1.at, align 8
  %a2.at = getelementptr i8, ptr %slots, i64 16
  %a2 = load i32, ptr %a2.at, align 8
  %a3.at = getelementptr i8, ptr %slots, i64 24
  %a3 = load i32, ptr %a3.at, align 8
  %a4.at = getelementptr i8, ptr %slots, i64 32
  %a4 = load ptr, ptr %a4.at, align 8
  %a5.at = getelementptr i8, ptr %slots, i64 40
  %a5 = load i32, ptr %a5.at, align 8
  %a6.at = getelementptr i8, ptr %slots, i64 48
  %a6 = load i32, ptr %a6.at, align 8
  %a7.at = getelementptr i8, ptr %slots, i64 56
  %a7 = load i32, ptr %a7.at, align 8
  %a8.at = getelementptr i8, ptr %slots, i64 64
  %a8 = load ptr, ptr %a8.at, align 8
  %a9.at = getelementptr i8, ptr %slots, i64 72
  %a9 = load i32, ptr %a9.at, align 8
  %a10.at = getelementptr i8, ptr %slots, i64 80
  %a10 = load i32, ptr %a10.at, align 8
  %a11.at = getelementptr i8, ptr %slots, i64 88
  %a11 = load i32, ptr %a11.at, align 8
  tail call void @cute_elementwise_add(ptr %a0, i32 %a1, i32 %a2, i32 %a3, ptr %a4, i32 %a5, i32 %a6, i32 %a7, ptr %a8, i32 %a9, i32 %a10, i32 %a11)
  ret void
}

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #0

attributes #0 = { nocallback nofree nounwind willreturn memory(argmem: write) }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
