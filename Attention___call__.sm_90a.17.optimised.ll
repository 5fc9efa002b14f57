source_filename = "LLVMDialectModule"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@basedsl_assertion_3 = private constant [77 x i8] c"/work/wt/clients14/tests/cute/programs/attention.py\1F71\1F10\1F\1F\1F[]\1Flaunch failed\00"
@basedsl_assertion_2 = private constant [114 x i8] c"/tmp/clients14/perf/fair.py\1F5\1F2\1F\1F\1F[]\1FValueError: an extent of 'mO' differs from that of 'mQ' with the same symbol\00"
@basedsl_assertion_1 = private constant [114 x i8] c"/tmp/clients14/perf/fair.py\1F5\1F2\1F\1F\1F[]\1FValueError: an extent of 'mV' differs from that of 'mQ' with the same symbol\00"
@basedsl_assertion_0 = private constant [114 x i8] c"/tmp/clients14/perf/fair.py\1F5\1F2\1F\1F\1F[]\1FValueError: an extent of 'mK' differs from that of 'mQ' with the same symbol\00"
@basedsl_launcher = external global i8

declare void @basedsl_assertion_failed(ptr) local_unnamed_addr

declare i32 @basedsl_launch(ptr, ptr, ptr) local_unnamed_addr

define void @cute_Attention___call__(ptr %0, i32 %1, i32 %2, i32 %3, i32 %4, ptr %5, i32 %6, i32 %7, i32 %8, i32 %9, ptr %10, i32 %11, i32 %12, i32 %13, i32 %14, ptr %15, i32 %16, i32 %17, i32 %18, i32 %19, float %20) local_unnamed_addr {
  %22 = alloca float, align 4
  %23 = alloca i32, align 4
  %24 = alloca i32, align 4
  %25 = alloca i32, align 4
  %26 = alloca i32, align 4
  %27 = alloca ptr addrspace(1), align 8
  %28 = alloca i32, align 4
  %29 = alloca i32, align 4
  %30 = alloca i32, align 4
  %31 = alloca i32, align 4
  %32 = alloca ptr addrspace(1), align 8
  %33 = alloca i32, align 4
  %34 = alloca i32, align 4
  %35 = alloca i32, align 4
  %36 = alloca i32, align 4
  %37 = alloca ptr addrspace(1), align 8
  %38 = alloca i32, align 4
  %39 = alloca i32, align 4
  %40 = alloca i32, align 4
  %41 = alloca i32, align 4
  %42 = alloca ptr addrspace(1), align 8
  %43 = alloca [21 x ptr], align 8
  %44 = alloca [18 x i64], align 8
  %45 = icmp eq i32 %1, %6
  br i1 %45, label %46, label %93

46:                                               ; preds = %21
  %47 = icmp eq i32 %2, %7
  br i1 %47, label %48, label %94

48:                                               ; preds = %46
  %49 = icmp eq i32 %1, %11
  br i1 %49, label %50, label %95

50:                                               ; preds = %48
  %51 = icmp eq i32 %2, %12
  br i1 %51, label %52, label %96

52:                                               ; preds = %50
  %53 = icmp eq i32 %1, %16
  br i1 %53, label %54, label %97

54:                                               ; preds = %52
  %55 = icmp eq i32 %2, %17
  br i1 %55, label %56, label %98

56:                                               ; preds = %54
  %57 = fmul float %20, 0x3FF7154760000000
  %58 = add i32 %1, 63
  %59 = lshr i32 %58, 6
  %60 = zext nneg i32 %59 to i64
  %61 = sext i32 %2 to i64
  %62 = addrspacecast ptr %0 to ptr addrspace(1)
  %63 = addrspacecast ptr %5 to ptr addrspace(1)
  %64 = addrspacecast ptr %10 to ptr addrspace(1)
  %65 = addrspacecast ptr %15 to ptr addrspace(1)
  store i64 %60, ptr %44, align 8
  %66 = getelementptr inbounds nuw i8, ptr %44, i64 8
  store i64 %61, ptr %66, align 8
  %67 = getelementptr inbounds nuw i8, ptr %44, i64 16
  store <4 x i64> <i64 1, i64 128, i64 1, i64 1>, ptr %67, align 8
  %68 = getelementptr inbounds nuw i8, ptr %44, i64 48
  %69 = getelementptr inbounds nuw i8, ptr %44, i64 104
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(56) %68, i8 0, i64 56, i1 false)
  store i64 21, ptr %69, align 8
  %70 = getelementptr inbounds nuw i8, ptr %44, i64 112
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(32) %70, i8 0, i64 32, i1 false)
  store ptr addrspace(1) %62, ptr %42, align 8
  store ptr %42, ptr %43, align 8
  store i32 %1, ptr %41, align 4
  %71 = getelementptr inbounds nuw i8, ptr %43, i64 8
  store ptr %41, ptr %71, align 8
  store i32 %2, ptr %40, align 4
  %72 = getelementptr inbounds nuw i8, ptr %43, i64 16
  store ptr %40, ptr %72, align 8
  store i32 %3, ptr %39, align 4
  %73 = getelementptr inbounds nuw i8, ptr %43, i64 24
  store ptr %39, ptr %73, align 8
  store i32 %4, ptr %38, align 4
  %74 = getelementptr inbounds nuw i8, ptr %43, i64 32
  store ptr %38, ptr %74, align 8
  store ptr addrspace(1) %63, ptr %37, align 8
  %75 = getelementptr inbounds nuw i8, ptr %43, i64 40
  store ptr %37, ptr %75, align 8
  store i32 %1, ptr %36, align 4
  %76 = getelementptr inbounds nuw i8, ptr %43, i64 48
  store ptr %36, ptr %76, align 8
  store i32 %2, ptr %35, align 4
  %77 = getelementptr inbounds nuw i8, ptr %43, i64 56
  store ptr %35, ptr %77, align 8
  store i32 %8, ptr %34, align 4
  %78 = getelementptr inbounds nuw i8, ptr %43, i64 64
  store ptr %34, ptr %78, align 8
  store i32 %9, ptr %33, align 4
  %79 = getelementptr inbounds nuw i8, ptr %43, i64 72
  store ptr %33, ptr %79, align 8
  store ptr addrspace(1) %64, ptr %32, align 8
  %80 = getelementptr inbounds nuw i8, ptr %43, i64 80
  store ptr %32, ptr %80, align 8
  store i32 %1, ptr %31, align 4
  %81 = getelementptr inbounds nuw i8, ptr %43, i64 88
  store ptr %31, ptr %81, align 8
  store i32 %2, ptr %30, align 4
  %82 = getelementptr inbounds nuw i8, ptr %43, i64 96
  store ptr %30, ptr %82, align 8
  store i32 %13, ptr %29, align 4
  %83 = getelementptr inbounds nuw i8, ptr %43, i64 104
  store ptr %29, ptr %83, align 8
  store i32 %14, ptr %28, align 4
  %84 = getelementptr inbounds nuw i8, ptr %43, i64 112
  store ptr %28, ptr %84, align 8
  store ptr addrspace(1) %65, ptr %27, align 8
  %85 = getelementptr inbounds nuw i8, ptr %43, i64 120
  store ptr %27, ptr %85, align 8
  store i32 %1, ptr %26, align 4
  %86 = getelementptr inbounds nuw i8, ptr %43, i64 128
  store ptr %26, ptr %86, align 8
  store i32 %2, ptr %25, align 4
  %87 = getelementptr inbounds nuw i8, ptr %43, i64 136
  store ptr %25, ptr %87, align 8
  store i32 %18, ptr %24, align 4
  %88 = getelementptr inbounds nuw i8, ptr %43, i64 144
  store ptr %24, ptr %88, align 8
  store i32 %19, ptr %23, align 4
  %89 = getelementptr inbounds nuw i8, ptr %43, i64 152
  store ptr %23, ptr %89, align 8
  store float %57, ptr %22, align 4
  %90 = getelementptr inbounds nuw i8, ptr %43, i64 160
  store ptr %22, ptr %90, align 8
  %91 = call i32 @basedsl_launch(ptr nonnull @basedsl_launcher, ptr nonnull %44, ptr nonnull %43)
  %92 = icmp eq i32 %91, 0
  br i1 %92, label %common.ret, label %99

common.ret:                                       ; preds = %99, %98, %97, %96, %95, %94, %93, %56
  ret void

93:                                               ; preds = %21
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_0)
  br label %common.ret

94:                                               ; preds = %46
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_0)
  br label %common.ret

95:                                               ; preds = %48
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_1)
  br label %common.ret

96:                                               ; preds = %50
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_1)
  br label %common.ret

97:                                               ; preds = %52
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_2)
  br label %common.ret

98:                                               ; preds = %54
  tail call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_2)
  br label %common.ret

99:                                               ; preds = %56
  call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_3)
  br label %common.ret
}

define void @cute_Attention___call____entry(ptr readonly captures(none) %slots) local_unnamed_addr {
  %a0 = load ptr, ptr %slots, align 8
  %a1.at = getelementptr i8, ptr %slots, i64 8
  %a1 = load i32, ptr %a1.at, align 8
  %a2.at = getelementptr i8, ptr %slots, i64 16
  %a2 = load i32, ptr %a2.at, align 8
  %a3.at = getelementptr i8, ptr %slots, i64 24
  %a3 = load i32, ptr %a3.at, align 8
  %a4.at = getelementptr i8, ptr %slots, i64 32
  %a4 = load i32, ptr %a4.at, align 8
  %a5.at = getelementptr i8, ptr %slots, i64 40
  %a5 = load ptr, ptr %a5.at, align 8
  %a6.at = getelementptr i8, ptr %slots, i64 48
  %a6 = load i32, ptr %a6.at, align 8
  %a7.at = getelementptr i8, ptr %slots, i64 56
  %a7 = load i32, ptr %a7.at, align 8
  %a8.at = getelementptr i8, ptr %slots, i64 64
  %a8 = load i32, ptr %a8.at, align 8
  %a9.at = getelementptr i8, ptr %slots, i64 72
  %a9 = load i32, ptr %a9.at, align 8
  %a10.at = getelementptr i8, ptr %slots, i64 80
  %a10 = load ptr, ptr %a10.at, align 8
  %a11.at = getelementptr i8, ptr %slots, i64 88
  %a11 = load i32, ptr %a11.at, align 8
  %a12.at = getelementptr i8, ptr %slots, i64 96
  %a12 = load i32, ptr %a12.at, align 8
  %a13.at = getelementptr i8, ptr %slots, i64 104
  %a13 = load i32, ptr %a13.at, align 8
  %a14.at = getelementptr i8, ptr %slots, i64 112
  %a14 = load i32, ptr %a14.at, align 8
  %a15.at = getelementptr i8, ptr %slots, i64 120
  %a15 = load ptr, ptr %a15.at, align 8
  %a16.at = getelementptr i8, ptr %slots, i64 128
  %a16 = load i32, ptr %a16.at, align 8
  %a17.at = getelementptr i8, ptr %slots, i64 136
  %a17 = load i32, ptr %a17.at, align 8
  %a18.at = getelementptr i8, ptr %slots, i64 144
  %a18 = load i32, ptr %a18.at, align 8
  %a19.at = getelementptr i8, ptr %slots, i64 152
  %a19 = load i32, ptr %a19.at, align 8
  %a20.at = getelementptr i8, ptr %slots, i64 160
  %a20 = load float, ptr %a20.at, align 8
  tail call void @cute_Attention___call__(ptr %a0, i32 %a1, i32 %a2, i32 %a3, i32 %a4, ptr %a5, i32 %a6, i32 %a7, i32 %a8, i32 %a9, ptr %a10, i32 %a11, i32 %a12, i32 %a13, i32 %a14, ptr %a15, i32 %a16, i32 %a17, i32 %a18, i32 %a19, float %a20)
  ret void
}

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #0

attributes #0 = { nocallback nofree nounwind willreturn memory(argmem: write) }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
