; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"

@basedsl_assertion_0 = private constant [79 x i8] c"/work/wt/prog/tests/cute/programs/elementwise_apply.py\1F67\1F4\1F\1F\1F[]\1Flaunch failed\00"
@assert_msg = private constant [14 x i8] c"launch failed\00"
@basedsl_launcher = external global i8

declare void @basedsl_assertion_failed(ptr)

declare void @abort()

declare void @puts(ptr)

declare i32 @basedsl_launch(ptr, ptr, ptr)

define void @cute_elementwise_apply(ptr %0, ptr %1, ptr %2) {
  %4 = alloca ptr addrspace(1), i64 1, align 8
  %5 = alloca ptr addrspace(1), i64 1, align 8
  %6 = alloca ptr addrspace(1), i64 1, align 8
  %7 = alloca ptr, i64 3, align 8
  %8 = alloca i64, i64 18, align 8
  %9 = addrspacecast ptr %0 to ptr addrspace(1)
  %10 = addrspacecast ptr %1 to ptr addrspace(1)
  %11 = addrspacecast ptr %2 to ptr addrspace(1)
  store i64 8, ptr %8, align 4
  %12 = getelementptr i64, ptr %8, i32 1
  store i64 1, ptr %12, align 4
  %13 = getelementptr i64, ptr %8, i32 2
  store i64 1, ptr %13, align 4
  %14 = getelementptr i64, ptr %8, i32 3
  store i64 128, ptr %14, align 4
  %15 = getelementptr i64, ptr %8, i32 4
  store i64 1, ptr %15, align 4
  %16 = getelementptr i64, ptr %8, i32 5
  store i64 1, ptr %16, align 4
  %17 = getelementptr i64, ptr %8, i32 6
  store i64 0, ptr %17, align 4
  %18 = getelementptr i64, ptr %8, i32 7
  store i64 0, ptr %18, align 4
  %19 = getelementptr i64, ptr %8, i32 8
  store i64 0, ptr %19, align 4
  %20 = getelementptr i64, ptr %8, i32 9
  store i64 0, ptr %20, align 4
  %21 = getelementptr i64, ptr %8, i32 10
  store i64 0, ptr %21, align 4
  %22 = getelementptr i64, ptr %8, i32 11
  store i64 0, ptr %22, align 4
  %23 = getelementptr i64, ptr %8, i32 12
  store i64 0, ptr %23, align 4
  %24 = getelementptr i64, ptr %8, i32 13
  store i64 3, ptr %24, align 4
  %25 = getelementptr i64, ptr %8, i32 14
  store i64 0, ptr %25, align 4
  %26 = getelementptr i64, ptr %8, i32 15
  store i64 0, ptr %26, align 4
  %27 = getelementptr i64, ptr %8, i32 16
  store i64 0, ptr %27, align 4
  %28 = getelementptr i64, ptr %8, i32 17
  store i64 0, ptr %28, align 4
  store ptr addrspace(1) %9, ptr %6, align 8
  store ptr %6, ptr %7, align 8
  store ptr addrspace(1) %10, ptr %5, align 8
  %29 = getelementptr i64, ptr %7, i32 1
  store ptr %5, ptr %29, align 8
  store ptr addrspace(1) %11, ptr %4, align 8
  %30 = getelementptr i64, ptr %7, i32 2
  store ptr %4, ptr %30, align 8
  %31 = call i32 @basedsl_launch(ptr @basedsl_launcher, ptr %8, ptr %7)
  %32 = icmp eq i32 %31, 0
  br i1 %32, label %33, label %34

33:                                               ; preds = %3
  ret void

34:                                               ; preds = %3
  call void @basedsl_assertion_failed(ptr @basedsl_assertion_0)
  ret void
}

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
