; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"

@basedsl_assertion_3 = private constant [77 x i8] c"/work/wt/clients14/tests/cute/programs/attention.py\1F71\1F10\1F\1F\1F[]\1Flaunch failed\00"
@basedsl_assertion_2 = private constant [114 x i8] c"/tmp/clients14/perf/fair.py\1F5\1F2\1F\1F\1F[]\1FValueError: an extent of 'mO' differs from that of 'mQ' with the same symbol\00"
@basedsl_assertion_1 = private constant [114 x i8] c"/tmp/clients14/perf/fair.py\1F5\1F2\1F\1F\1F[]\1FValueError: an extent of 'mV' differs from that of 'mQ' with the same symbol\00"
@basedsl_assertion_0 = private constant [114 x i8] c"/tmp/clients14/perf/fair.py\1F5\1F2\1F\1F\1F[]\1FValueError: an extent of 'mK' differs from that of 'mQ' with the same symbol\00"
@assert_msg_5 = private constant [14 x i8] c"launch failed\00"
@assert_msg_4 = private constant [77 x i8] c"ValueError: an extent of 'mO' differs from that of 'mQ' with the same symbol\00"
@assert_msg_3 = private constant [77 x i8] c"ValueError: an extent of 'mO' differs from that of 'mQ' with the same symbol\00"
@assert_msg_2 = private constant [77 x i8] c"ValueError: an extent of 'mV' differs from that of 'mQ' with the same symbol\00"
@assert_msg_1 = private constant [77 x i8] c"ValueError: an extent of 'mV' differs from that of 'mQ' with the same symbol\00"
@assert_msg_0 = private constant [77 x i8] c"ValueError: an extent of 'mK' differs from that of 'mQ' with the same symbol\00"
@assert_msg = private constant [77 x i8] c"ValueError: an extent of 'mK' differs from that of 'mQ' with the same symbol\00"
@basedsl_launcher = external global i8

declare void @basedsl_assertion_failed(ptr)

declare void @abort()

declare void @puts(ptr)

declare i32 @basedsl_launch(ptr, ptr, ptr)

define void @cute_Attention___call__(ptr %0, i32 %1, i32 %2, i32 %3, i32 %4, ptr %5, i32 %6, i32 %7, i32 %8, i32 %9, ptr %10, i32 %11, i32 %12, i32 %13, i32 %14, ptr %15, i32 %16, i32 %17, i32 %18, i32 %19, float %20) {
  %22 = alloca float, i64 1, align 4
  %23 = alloca i32, i64 1, align 4
  %24 = alloca i32, i64 1, align 4
  %25 = alloca i32, i64 1, align 4
  %26 = alloca i32, i64 1, align 4
  %27 = alloca ptr addrspace(1), i64 1, align 8
  %28 = alloca i32, i64 1, align 4
  %29 = alloca i32, i64 1, align 4
  %30 = alloca i32, i64 1, align 4
  %31 = alloca i32, i64 1, align 4
  %32 = alloca ptr addrspace(1), i64 1, align 8
  %33 = alloca i32, i64 1, align 4
  %34 = alloca i32, i64 1, align 4
  %35 = alloca i32, i64 1, align 4
  %36 = alloca i32, i64 1, align 4
  %37 = alloca ptr addrspace(1), i64 1, align 8
  %38 = alloca i32, i64 1, align 4
  %39 = alloca i32, i64 1, align 4
  %40 = alloca i32, i64 1, align 4
  %41 = alloca i32, i64 1, align 4
  %42 = alloca ptr addrspace(1), i64 1, align 8
  %43 = alloca ptr, i64 21, align 8
  %44 = alloca i64, i64 18, align 8
  %45 = icmp eq i32 %1, %6
  br i1 %45, label %46, label %106

46:                                               ; preds = %21
  %47 = icmp eq i32 %2, %7
  br i1 %47, label %48, label %107

48:                                               ; preds = %46
  %49 = icmp eq i32 %1, %11
  br i1 %49, label %50, label %108

50:                                               ; preds = %48
  %51 = icmp eq i32 %2, %12
  br i1 %51, label %52, label %109

52:                                               ; preds = %50
  %53 = icmp eq i32 %1, %16
  br i1 %53, label %54, label %110

54:                                               ; preds = %52
  %55 = icmp eq i32 %2, %17
  br i1 %55, label %56, label %111

56:                                               ; preds = %54
  %57 = fmul float %20, 0x3FF7154760000000
  %58 = add i32 %1, 63
  %59 = lshr i32 %58, 6
  %60 = sext i32 %59 to i64
  %61 = sext i32 %2 to i64
  %62 = addrspacecast ptr %0 to ptr addrspace(1)
  %63 = addrspacecast ptr %5 to ptr addrspace(1)
  %64 = addrspacecast ptr %10 to ptr addrspace(1)
  %65 = addrspacecast ptr %15 to ptr addrspace(1)
  store i64 %60, ptr %44, align 4
  %66 = getelementptr i64, ptr %44, i32 1
  store i64 %61, ptr %66, align 4
  %67 = getelementptr i64, ptr %44, i32 2
  store i64 1, ptr %67, align 4
  %68 = getelementptr i64, ptr %44, i32 3
  store i64 128, ptr %68, align 4
  %69 = getelementptr i64, ptr %44, i32 4
  store i64 1, ptr %69, align 4
  %70 = getelementptr i64, ptr %44, i32 5
  store i64 1, ptr %70, align 4
  %71 = getelementptr i64, ptr %44, i32 6
  store i64 0, ptr %71, align 4
  %72 = getelementptr i64, ptr %44, i32 7
  store i64 0, ptr %72, align 4
  %73 = getelementptr i64, ptr %44, i32 8
  store i64 0, ptr %73, align 4
  %74 = getelementptr i64, ptr %44, i32 9
  store i64 0, ptr %74, align 4
  %75 = getelementptr i64, ptr %44, i32 10
  store i64 0, ptr %75, align 4
  %76 = getelementptr i64, ptr %44, i32 11
  store i64 0, ptr %76, align 4
  %77 = getelementptr i64, ptr %44, i32 12
  store i64 0, ptr %77, align 4
  %78 = getelementptr i64, ptr %44, i32 13
  store i64 21, ptr %78, align 4
  %79 = getelementptr i64, ptr %44, i32 14
  store i64 0, ptr %79, align 4
  %80 = getelementptr i64, ptr %44, i32 15
  store i64 0, ptr %80, align 4
  %81 = getelementptr i64, ptr %44, i32 16
  store i64 0, ptr %81, align 4
  %82 = getelementptr i64, ptr %44, i32 17
  store i64 0, ptr %82, align 4
  store ptr addrspace(1) %62, ptr %42, align 8
  store ptr %42, ptr %43, align 8
  store i32 %1, ptr %41, align 4
  %83 = getelementptr i64, ptr %43, i32 1
  store ptr %41, ptr %83, align 8
  store i32 %2, ptr %40, align 4
  %84 = getelementptr i64, ptr %43, i32 2
  store ptr %40, ptr %84, align 8
  store i32 %3, ptr %39, align 4
  %85 = getelementptr i64, ptr %43, i32 3
  store ptr %39, ptr %85, align 8
  store i32 %4, ptr %38, align 4
  %86 = getelementptr i64, ptr %43, i32 4
  store ptr %38, ptr %86, align 8
  store ptr addrspace(1) %63, ptr %37, align 8
  %87 = getelementptr i64, ptr %43, i32 5
  store ptr %37, ptr %87, align 8
  store i32 %1, ptr %36, align 4
  %88 = getelementptr i64, ptr %43, i32 6
  store ptr %36, ptr %88, align 8
  store i32 %2, ptr %35, align 4
  %89 = getelementptr i64, ptr %43, i32 7
  store ptr %35, ptr %89, align 8
  store i32 %8, ptr %34, align 4
  %90 = getelementptr i64, ptr %43, i32 8
  store ptr %34, ptr %90, align 8
  store i32 %9, ptr %33, align 4
  %91 = getelementptr i64, ptr %43, i32 9
  store ptr %33, ptr %91, align 8
  store ptr addrspace(1) %64, ptr %32, align 8
  %92 = getelementptr i64, ptr %43, i32 10
  store ptr %32, ptr %92, align 8
  store i32 %1, ptr %31, align 4
  %93 = getelementptr i64, ptr %43, i32 11
  store ptr %31, ptr %93, align 8
  store i32 %2, ptr %30, align 4
  %94 = getelementptr i64, ptr %43, i32 12
  store ptr %30, ptr %94, align 8
  store i32 %13, ptr %29, align 4
  %95 = getelementptr i64, ptr %43, i32 13
  store ptr %29, ptr %95, align 8
  store i32 %14, ptr %28, align 4
  %96 = getelementptr i64, ptr %43, i32 14
  store ptr %28, ptr %96, align 8
  store ptr addrspace(1) %65, ptr %27, align 8
  %97 = getelementptr i64, ptr %43, i32 15
  store ptr %27, ptr %97, align 8
  store i32 %1, ptr %26, align 4
  %98 = getelementptr i64, ptr %43, i32 16
  store ptr %26, ptr %98, align 8
  store i32 %2, ptr %25, align 4
  %99 = getelementptr i64, ptr %43, i32 17
  store ptr %25, ptr %99, align 8
  store i32 %18, ptr %24, align 4
  %100 = getelementptr i64, ptr %43, i32 18
  store ptr %24, ptr %100, align 8
  store i32 %19, ptr %23, align 4
  %101 = getelementptr i64, ptr %43, i32 19
  store ptr %23, ptr %101, align 8
  store float %57, ptr %22, align 4
  %102 = getelementptr i64, ptr %43, i32 20
  store ptr %22, ptr %102, align 8
  %103 = call i32 @basedsl_launch(ptr @basedsl_launcher, ptr %44, ptr %43)
  %104 = icmp eq i32 %103, 0
  br i1 %104, label %105, label %112

105:                                              ; preds = %56
  ret void

106:                                              ; preds = %21
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_0)
  ret void

107:                                              ; preds = %46
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_0)
  ret void

108:                                              ; preds = %48
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_1)
  ret void

109:                                              ; preds = %50
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_1)
  ret void

110:                                              ; preds = %52
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_2)
  ret void

111:                                              ; preds = %54
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_2)
  ret void

112:                                              ; preds = %56
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_3)
  ret void
}

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
