; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"

@basedsl_assertion_2 = private constant [53 x i8] c"/tmp/clients14/perf/progs.py\1F38\1F4\1F\1F\1F[]\1Flaunch failed\00"
@basedsl_assertion_1 = private constant [112 x i8] c"/tmp/clients14/perf/ir.py\1F4\1F2\1F\1F\1F[]\1FValueError: an extent of 'mC' differs from that of 'mA' with the same symbol\00"
@basedsl_assertion_0 = private constant [112 x i8] c"/tmp/clients14/perf/ir.py\1F4\1F2\1F\1F\1F[]\1FValueError: an extent of 'mB' differs from that of 'mA' with the same symbol\00"
@assert_msg_3 = private constant [14 x i8] c"launch failed\00"
@assert_msg_2 = private constant [77 x i8] c"ValueError: an extent of 'mC' differs from that of 'mA' with the same symbol\00"
@assert_msg_1 = private constant [77 x i8] c"ValueError: an extent of 'mC' differs from that of 'mA' with the same symbol\00"
@assert_msg_0 = private constant [77 x i8] c"ValueError: an extent of 'mB' differs from that of 'mA' with the same symbol\00"
@assert_msg = private constant [77 x i8] c"ValueError: an extent of 'mB' differs from that of 'mA' with the same symbol\00"
@basedsl_launcher = external global i8

declare void @basedsl_assertion_failed(ptr)

declare void @abort()

declare void @puts(ptr)

declare i32 @basedsl_launch(ptr, ptr, ptr)

define void @cute_elementwise_add(ptr %0, i32 %1, i32 %2, i32 %3, ptr %4, i32 %5, i32 %6, i32 %7, ptr %8, i32 %9, i32 %10, i32 %11) {
  %13 = alloca i32, i64 1, align 4
  %14 = alloca i32, i64 1, align 4
  %15 = alloca i32, i64 1, align 4
  %16 = alloca i32, i64 1, align 4
  %17 = alloca i32, i64 1, align 4
  %18 = alloca i32, i64 1, align 4
  %19 = alloca i32, i64 1, align 4
  %20 = alloca i32, i64 1, align 4
  %21 = alloca ptr addrspace(1), i64 1, align 8
  %22 = alloca i32, i64 1, align 4
  %23 = alloca i32, i64 1, align 4
  %24 = alloca i32, i64 1, align 4
  %25 = alloca i32, i64 1, align 4
  %26 = alloca ptr addrspace(1), i64 1, align 8
  %27 = alloca i32, i64 1, align 4
  %28 = alloca i32, i64 1, align 4
  %29 = alloca i32, i64 1, align 4
  %30 = alloca i32, i64 1, align 4
  %31 = alloca ptr addrspace(1), i64 1, align 8
  %32 = alloca ptr, i64 19, align 8
  %33 = alloca i64, i64 18, align 8
  %34 = icmp eq i32 %1, %5
  br i1 %34, label %35, label %112

35:                                               ; preds = %12
  %36 = icmp eq i32 %2, %6
  br i1 %36, label %37, label %113

37:                                               ; preds = %35
  %38 = icmp eq i32 %1, %9
  br i1 %38, label %39, label %114

39:                                               ; preds = %37
  %40 = icmp eq i32 %2, %10
  br i1 %40, label %41, label %115

41:                                               ; preds = %39
  %42 = add i32 %1, 15
  %43 = lshr i32 %42, 4
  %44 = mul i32 %43, 16
  %45 = mul i32 %3, 16
  %46 = add i32 %2, 127
  %47 = lshr i32 %46, 7
  %48 = mul i32 %47, 128
  %49 = add i32 %1, 15
  %50 = lshr i32 %49, 4
  %51 = mul i32 %50, 16
  %52 = mul i32 %7, 16
  %53 = add i32 %2, 127
  %54 = lshr i32 %53, 7
  %55 = mul i32 %54, 128
  %56 = add i32 %1, 15
  %57 = lshr i32 %56, 4
  %58 = mul i32 %57, 16
  %59 = mul i32 %11, 16
  %60 = add i32 %2, 127
  %61 = lshr i32 %60, 7
  %62 = mul i32 %61, 128
  %63 = add i32 %1, 15
  %64 = lshr i32 %63, 4
  %65 = mul i32 %64, 16
  %66 = add i32 %2, 127
  %67 = lshr i32 %66, 7
  %68 = mul i32 %67, 128
  %69 = mul i32 %57, %61
  %70 = sext i32 %69 to i64
  %71 = addrspacecast ptr %0 to ptr addrspace(1)
  %72 = addrspacecast ptr %4 to ptr addrspace(1)
  %73 = addrspacecast ptr %8 to ptr addrspace(1)
  store i64 %70, ptr %33, align 4
  %74 = getelementptr i64, ptr %33, i32 1
  store i64 1, ptr %74, align 4
  %75 = getelementptr i64, ptr %33, i32 2
  store i64 1, ptr %75, align 4
  %76 = getelementptr i64, ptr %33, i32 3
  store i64 128, ptr %76, align 4
  %77 = getelementptr i64, ptr %33, i32 4
  store i64 1, ptr %77, align 4
  %78 = getelementptr i64, ptr %33, i32 5
  store i64 1, ptr %78, align 4
  %79 = getelementptr i64, ptr %33, i32 6
  store i64 0, ptr %79, align 4
  %80 = getelementptr i64, ptr %33, i32 7
  store i64 0, ptr %80, align 4
  %81 = getelementptr i64, ptr %33, i32 8
  store i64 0, ptr %81, align 4
  %82 = getelementptr i64, ptr %33, i32 9
  store i64 0, ptr %82, align 4
  %83 = getelementptr i64, ptr %33, i32 10
  store i64 0, ptr %83, align 4
  %84 = getelementptr i64, ptr %33, i32 11
  store i64 0, ptr %84, align 4
  %85 = getelementptr i64, ptr %33, i32 12
  store i64 0, ptr %85, align 4
  %86 = getelementptr i64, ptr %33, i32 13
  store i64 19, ptr %86, align 4
  %87 = getelementptr i64, ptr %33, i32 14
  store i64 0, ptr %87, align 4
  %88 = getelementptr i64, ptr %33, i32 15
  store i64 0, ptr %88, align 4
  %89 = getelementptr i64, ptr %33, i32 16
  store i64 0, ptr %89, align 4
  %90 = getelementptr i64, ptr %33, i32 17
  store i64 0, ptr %90, align 4
  store ptr addrspace(1) %71, ptr %31, align 8
  store ptr %31, ptr %32, align 8
  store i32 %43, ptr %30, align 4
  %91 = getelementptr i64, ptr %32, i32 1
  store ptr %30, ptr %91, align 8
  store i32 %47, ptr %29, align 4
  %92 = getelementptr i64, ptr %32, i32 2
  store ptr %29, ptr %92, align 8
  store i32 %3, ptr %28, align 4
  %93 = getelementptr i64, ptr %32, i32 3
  store ptr %28, ptr %93, align 8
  store i32 %45, ptr %27, align 4
  %94 = getelementptr i64, ptr %32, i32 4
  store ptr %27, ptr %94, align 8
  store ptr addrspace(1) %72, ptr %26, align 8
  %95 = getelementptr i64, ptr %32, i32 5
  store ptr %26, ptr %95, align 8
  store i32 %50, ptr %25, align 4
  %96 = getelementptr i64, ptr %32, i32 6
  store ptr %25, ptr %96, align 8
  store i32 %54, ptr %24, align 4
  %97 = getelementptr i64, ptr %32, i32 7
  store ptr %24, ptr %97, align 8
  store i32 %7, ptr %23, align 4
  %98 = getelementptr i64, ptr %32, i32 8
  store ptr %23, ptr %98, align 8
  store i32 %52, ptr %22, align 4
  %99 = getelementptr i64, ptr %32, i32 9
  store ptr %22, ptr %99, align 8
  store ptr addrspace(1) %73, ptr %21, align 8
  %100 = getelementptr i64, ptr %32, i32 10
  store ptr %21, ptr %100, align 8
  store i32 %57, ptr %20, align 4
  %101 = getelementptr i64, ptr %32, i32 11
  store ptr %20, ptr %101, align 8
  store i32 %61, ptr %19, align 4
  %102 = getelementptr i64, ptr %32, i32 12
  store ptr %19, ptr %102, align 8
  store i32 %11, ptr %18, align 4
  %103 = getelementptr i64, ptr %32, i32 13
  store ptr %18, ptr %103, align 8
  store i32 %59, ptr %17, align 4
  %104 = getelementptr i64, ptr %32, i32 14
  store ptr %17, ptr %104, align 8
  store i32 %64, ptr %16, align 4
  %105 = getelementptr i64, ptr %32, i32 15
  store ptr %16, ptr %105, align 8
  store i32 %67, ptr %15, align 4
  %106 = getelementptr i64, ptr %32, i32 16
  store ptr %15, ptr %106, align 8
  store i32 %1, ptr %14, align 4
  %107 = getelementptr i64, ptr %32, i32 17
  store ptr %14, ptr %107, align 8
  store i32 %2, ptr %13, align 4
  %108 = getelementptr i64, ptr %32, i32 18
  store ptr %13, ptr %108, align 8
  %109 = call i32 @basedsl_launch(ptr @basedsl_launcher, ptr %33, ptr %32)
  %110 = icmp eq i32 %109, 0
  br i1 %110, label %111, label %116

111:                                              ; preds = %41
  ret void

112:                                              ; preds = %12
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_0)
  ret void

113:                                              ; preds = %35
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_0)
  ret void

114:                                              ; preds = %37
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_1)
  ret void

115:                                              ; preds = %39
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_1)
  ret void

116:                                              ; preds = %41
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_2)
  ret void
}

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
