source_filename = "LLVMDialectModule"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@basedsl_assertion_0 = private constant [79 x i8] c"/work/wt/prog/tests/cute/programs/elementwise_apply.py\1F67\1F4\1F\1F\1F[]\1Flaunch failed\00"
@basedsl_launcher = external global i8

declare void @basedsl_assertion_failed(ptr) local_unnamed_addr

declare i32 @basedsl_launch(ptr, ptr, ptr) local_unnamed_addr

define void @cute_elementwise_apply(ptr %0, ptr %1, ptr %2) local_unnamed_addr {
  %4 = alloca ptr addrspace(1), align 8
  %5 = alloca ptr addrspace(1), align 8
  %6 = alloca ptr addrspace(1), align 8
  %7 = alloca [3 x ptr], align 8
  %8 = alloca [18 x i64], align 8
  %9 = addrspacecast ptr %0 to ptr addrspace(1)
  %10 = addrspacecast ptr %1 to ptr addrspace(1)
  %11 = addrspacecast ptr %2 to ptr addrspace(1)
  store <4 x i64> <i64 8, i64 1, i64 1, i64 128>, ptr %8, align 8
  %12 = getelementptr inbounds nuw i8, ptr %8, i64 32
  store i64 1, ptr %12, align 8
  %13 = getelementptr inbounds nuw i8, ptr %8, i64 40
  store i64 1, ptr %13, align 8
  %14 = getelementptr inbounds nuw i8, ptr %8, i64 48
  %15 = getelementptr inbounds nuw i8, ptr %8, i64 104
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(56) %14, i8 0, i64 56, i1 false)
  store i64 3, ptr %15, align 8
  %16 = getelementptr inbounds nuw i8, ptr %8, i64 112
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(32) %16, i8 0, i64 32, i1 false)
  store ptr addrspace(1) %9, ptr %6, align 8
  store ptr %6, ptr %7, align 8
  store ptr addrspace(1) %10, ptr %5, align 8
  %17 = getelementptr inbounds nuw i8, ptr %7, i64 8
  store ptr %5, ptr %17, align 8
  store ptr addrspace(1) %11, ptr %4, align 8
  %18 = getelementptr inbounds nuw i8, ptr %7, i64 16
  store ptr %4, ptr %18, align 8
  %19 = call i32 @basedsl_launch(ptr nonnull @basedsl_launcher, ptr nonnull %8, ptr nonnull %7)
  %20 = icmp eq i32 %19, 0
  br i1 %20, label %common.ret, label %21

common.ret:                                       ; preds = %21, %3
  ret void

21:                                               ; preds = %3
  call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_0)
  br label %common.ret
}

define void @cute_elementwise_apply__entry(ptr readonly captures(none) %slots) local_unnamed_addr {
  %1 = alloca ptr addrspace(1), align 8
  %2 = alloca ptr addrspace(1), align 8
  %3 = alloca ptr addrspace(1), align 8
  %4 = alloca [3 x ptr], align 8
  %5 = alloca [18 x i64], align 8
  %a0 = load ptr, ptr %slots, align 8
  %a1.at = getelementptr i8, ptr %slots, i64 8
  %a1 = load ptr, ptr %a1.at, align 8
  %a2.at = getelementptr i8, ptr %slots, i64 16
  %a2 = load ptr, ptr %a2.at, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %1)
  call void @llvm.lifetime.start.p0(ptr nonnull %2)
  call void @llvm.lifetime.start.p0(ptr nonnull %3)
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  %6 = addrspacecast ptr %a0 to ptr addrspace(1)
  %7 = addrspacecast ptr %a1 to ptr addrspace(1)
  %8 = addrspacecast ptr %a2 to ptr addrspace(1)
  store <4 x i64> <i64 8, i64 1, i64 1, i64 128>, ptr %5, align 8
  %9 = getelementptr inbounds nuw i8, ptr %5, i64 32
  store i64 1, ptr %9, align 8
  %10 = getelementptr inbounds nuw i8, ptr %5, i64 40
  store i64 1, ptr %10, align 8
  %11 = getelementptr inbounds nuw i8, ptr %5, i64 48
  %12 = getelementptr inbounds nuw i8, ptr %5, i64 104
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(56) %11, i8 0, i64 56, i1 false)
  store i64 3, ptr %12, align 8
  %13 = getelementptr inbounds nuw i8, ptr %5, i64 112
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(32) %13, i8 0, i64 32, i1 false)
  store ptr addrspace(1) %6, ptr %3, align 8
  store ptr %3, ptr %4, align 8
  store ptr addrspace(1) %7, ptr %2, align 8
  %14 = getelementptr inbounds nuw i8, ptr %4, i64 8
  store ptr %2, ptr %14, align 8
  store ptr addrspace(1) %8, ptr %1, align 8
  %15 = getelementptr inbounds nuw i8, ptr %4, i64 16
  store ptr %1, ptr %15, align 8
  %16 = call i32 @basedsl_launch(ptr nonnull @basedsl_launcher, ptr nonnull %5, ptr nonnull %4)
  %17 = icmp eq i32 %16, 0
  br i1 %17, label %cute_elementwise_apply.exit, label %18

18:                                               ; preds = %0
  call void @basedsl_assertion_failed(ptr nonnull @basedsl_assertion_0)
  br label %cute_elementwise_apply.exit

cute_elementwise_apply.exit:                      ; preds = %18, %0
  call void @llvm.lifetime.end.p0(ptr nonnull %1)
  call void @llvm.lifetime.end.p0(ptr nonnull %2)
  call void @llvm.lifetime.end.p0(ptr nonnull %3)
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  ret void
}

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #0

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

attributes #0 = { nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
