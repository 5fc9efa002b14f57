; made of call.c db0284ac31151b46fe849652852558e806941c0cb30610b992969508edaa32c2
%struct.Object = type { i64, ptr }
%struct.Argument = type { ptr, ptr, i64 }
%struct.Tensor = type { ptr, i64, i32, i32, ptr, ptr, i64 }
%struct.Guard = type { i64, ptr, ptr, ptr }
%struct.Result = type { i64, i64 }

@PyLong_Type = external global %struct.Object, align 8
@_Py_TrueStruct = external global %struct.Object, align 8
@_Py_FalseStruct = external global %struct.Object, align 8
@PyFloat_Type = external global %struct.Object, align 8
@PyUnicode_Type = external global %struct.Object, align 8
@PyTuple_Type = external global %struct.Object, align 8
@PyBytes_Type = external global %struct.Object, align 8
@_Py_NoneStruct = external global %struct.Object, align 8

define range(i64 0, 2) i64 @basedsl_unpack_int(ptr noundef %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = alloca i32, align 4
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = icmp eq ptr %6, @PyLong_Type
  br i1 %7, label %8, label %31

8:                                                ; preds = %3
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  store i32 0, ptr %4, align 4
  %9 = call i64 @PyLong_AsLongLongAndOverflow(ptr noundef nonnull %0, ptr noundef nonnull %4)
  %10 = load i32, ptr %4, align 4
  %11 = icmp eq i32 %10, 0
  br i1 %11, label %12, label %29

12:                                               ; preds = %8
  %13 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %14 = load i64, ptr %13, align 8
  %15 = icmp slt i64 %9, %14
  br i1 %15, label %29, label %16

16:                                               ; preds = %12
  %17 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %18 = load i64, ptr %17, align 8
  %19 = icmp sgt i64 %9, %18
  br i1 %19, label %29, label %20

20:                                               ; preds = %16
  %21 = load i64, ptr %2, align 8
  switch i64 %21, label %28 [
    i64 1, label %22
    i64 2, label %24
    i64 4, label %26
  ]

22:                                               ; preds = %20
  %23 = trunc i64 %9 to i8
  store i8 %23, ptr %1, align 1
  br label %29

24:                                               ; preds = %20
  %25 = trunc i64 %9 to i16
  store i16 %25, ptr %1, align 2
  br label %29

26:                                               ; preds = %20
  %27 = trunc i64 %9 to i32
  store i32 %27, ptr %1, align 4
  br label %29

28:                                               ; preds = %20
  store i64 %9, ptr %1, align 8
  br label %29

29:                                               ; preds = %28, %26, %24, %22, %8, %12, %16
  %30 = phi i64 [ 0, %8 ], [ 0, %16 ], [ 0, %12 ], [ 1, %22 ], [ 1, %24 ], [ 1, %26 ], [ 1, %28 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  br label %31

31:                                               ; preds = %3, %29
  %32 = phi i64 [ %30, %29 ], [ 0, %3 ]
  ret i64 %32
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare i64 @PyLong_AsLongLongAndOverflow(ptr noundef, ptr noundef)

declare void @llvm.lifetime.end.p0(ptr captures(none))

define range(i64 0, 2) i64 @basedsl_unpack_uint64(ptr noundef %0, ptr noundef writeonly captures(none) %1, ptr noundef readnone captures(none) %2) {
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %5 = load ptr, ptr %4, align 8
  %6 = icmp eq ptr %5, @PyLong_Type
  br i1 %6, label %7, label %15

7:                                                ; preds = %3
  %8 = tail call i64 @PyLong_AsUnsignedLongLong(ptr noundef nonnull %0)
  %9 = icmp eq i64 %8, -1
  br i1 %9, label %10, label %14

10:                                               ; preds = %7
  %11 = tail call ptr @PyErr_Occurred()
  %12 = icmp eq ptr %11, null
  br i1 %12, label %14, label %13

13:                                               ; preds = %10
  tail call void @PyErr_Clear()
  br label %15

14:                                               ; preds = %10, %7
  store i64 %8, ptr %1, align 8
  br label %15

15:                                               ; preds = %13, %14, %3
  %16 = phi i64 [ 0, %3 ], [ 0, %13 ], [ 1, %14 ]
  ret i64 %16
}

declare i64 @PyLong_AsUnsignedLongLong(ptr noundef)

declare ptr @PyErr_Occurred()

declare void @PyErr_Clear()

define range(i64 0, 2) i64 @basedsl_unpack_bool(ptr noundef readnone captures(address) %0, ptr noundef writeonly captures(none) %1, ptr noundef readnone captures(none) %2) {
  %4 = icmp eq ptr %0, @_Py_TrueStruct
  br i1 %4, label %7, label %5

5:                                                ; preds = %3
  %6 = icmp eq ptr %0, @_Py_FalseStruct
  br i1 %6, label %7, label %9

7:                                                ; preds = %5, %3
  %8 = phi i8 [ 1, %3 ], [ 0, %5 ]
  store i8 %8, ptr %1, align 1
  br label %9

9:                                                ; preds = %7, %5
  %10 = phi i64 [ 0, %5 ], [ 1, %7 ]
  ret i64 %10
}

define range(i64 0, 2) i64 @basedsl_unpack_float(ptr noundef %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %5 = load ptr, ptr %4, align 8
  %6 = icmp eq ptr %5, @PyFloat_Type
  br i1 %6, label %7, label %9

7:                                                ; preds = %3
  %8 = tail call double @PyFloat_AsDouble(ptr noundef nonnull %0)
  br label %22

9:                                                ; preds = %3
  %10 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %11 = load i64, ptr %10, align 8
  %12 = icmp ne i64 %11, 0
  %13 = icmp eq ptr %5, @PyLong_Type
  %14 = and i1 %13, %12
  br i1 %14, label %15, label %35

15:                                               ; preds = %9
  %16 = tail call double @PyLong_AsDouble(ptr noundef nonnull %0)
  %17 = fcmp oeq double %16, -1.000000e+00
  br i1 %17, label %18, label %22

18:                                               ; preds = %15
  %19 = tail call ptr @PyErr_Occurred()
  %20 = icmp eq ptr %19, null
  br i1 %20, label %22, label %21

21:                                               ; preds = %18
  tail call void @PyErr_Clear()
  br label %35

22:                                               ; preds = %18, %15, %7
  %23 = phi double [ %8, %7 ], [ -1.000000e+00, %18 ], [ %16, %15 ]
  %24 = load i64, ptr %2, align 8
  %25 = icmp eq i64 %24, 4
  br i1 %25, label %26, label %34

26:                                               ; preds = %22
  %27 = fptrunc double %23 to float
  %28 = fsub float %27, %27
  %29 = fcmp une float %28, 0.000000e+00
  %30 = fsub double %23, %23
  %31 = fcmp oeq double %30, 0.000000e+00
  %32 = select i1 %29, i1 %31, i1 false
  br i1 %32, label %35, label %33

33:                                               ; preds = %26
  store float %27, ptr %1, align 4
  br label %35

34:                                               ; preds = %22
  store double %23, ptr %1, align 8
  br label %35

35:                                               ; preds = %34, %33, %26, %9, %21
  %36 = phi i64 [ 0, %26 ], [ 0, %9 ], [ 0, %21 ], [ 1, %33 ], [ 1, %34 ]
  ret i64 %36
}

declare double @PyFloat_AsDouble(ptr noundef)

declare double @PyLong_AsDouble(ptr noundef)

define range(i64 0, 2) i64 @basedsl_unpack_same(ptr noundef %0, ptr noundef readnone captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = ptrtoint ptr %0 to i64
  %5 = load i64, ptr %2, align 8
  %6 = icmp eq i64 %5, %4
  %7 = zext i1 %6 to i64
  ret i64 %7
}

define range(i64 0, 2) i64 @basedsl_unpack_equal_int(ptr noundef %0, ptr noundef readnone captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = alloca i32, align 4
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = icmp eq ptr %6, @PyLong_Type
  br i1 %7, label %8, label %18

8:                                                ; preds = %3
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  store i32 0, ptr %4, align 4
  %9 = call i64 @PyLong_AsLongLongAndOverflow(ptr noundef nonnull %0, ptr noundef nonnull %4)
  %10 = load i32, ptr %4, align 4
  %11 = icmp eq i32 %10, 0
  br i1 %11, label %12, label %16

12:                                               ; preds = %8
  %13 = load i64, ptr %2, align 8
  %14 = icmp eq i64 %9, %13
  %15 = zext i1 %14 to i64
  br label %16

16:                                               ; preds = %12, %8
  %17 = phi i64 [ 0, %8 ], [ %15, %12 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  br label %18

18:                                               ; preds = %3, %16
  %19 = phi i64 [ %17, %16 ], [ 0, %3 ]
  ret i64 %19
}

define range(i64 0, 2) i64 @basedsl_unpack_equal_text(ptr noundef %0, ptr noundef readnone captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = ptrtoint ptr %0 to i64
  %5 = load i64, ptr %2, align 8
  %6 = icmp eq i64 %5, %4
  br i1 %6, label %16, label %7

7:                                                ; preds = %3
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %9 = load ptr, ptr %8, align 8
  %10 = icmp eq ptr %9, @PyUnicode_Type
  br i1 %10, label %11, label %16

11:                                               ; preds = %7
  %12 = inttoptr i64 %5 to ptr
  %13 = tail call i32 @PyUnicode_Compare(ptr noundef nonnull %0, ptr noundef %12)
  %14 = icmp eq i32 %13, 0
  %15 = zext i1 %14 to i64
  br label %16

16:                                               ; preds = %7, %3, %11
  %17 = phi i64 [ %15, %11 ], [ 1, %3 ], [ 0, %7 ]
  ret i64 %17
}

declare i32 @PyUnicode_Compare(ptr noundef, ptr noundef)

define range(i64 0, 2) i64 @basedsl_unpack_tuple(ptr noundef %0, ptr noundef %1, ptr noundef readonly captures(none) %2) {
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %5 = load ptr, ptr %4, align 8
  %6 = icmp eq ptr %5, @PyTuple_Type
  br i1 %6, label %7, label %30

7:                                                ; preds = %3
  %8 = tail call i64 @PyTuple_Size(ptr noundef nonnull %0)
  %9 = load i64, ptr %2, align 8
  %10 = icmp eq i64 %8, %9
  br i1 %10, label %11, label %30

11:                                               ; preds = %7
  %12 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %13 = icmp slt i64 %8, 1
  br i1 %13, label %30, label %18

14:                                               ; preds = %18
  %15 = add nuw nsw i64 %19, 1
  %16 = load i64, ptr %2, align 8
  %17 = icmp slt i64 %15, %16
  br i1 %17, label %18, label %30

18:                                               ; preds = %11, %14
  %19 = phi i64 [ %15, %14 ], [ 0, %11 ]
  %20 = tail call ptr @PyTuple_GetItem(ptr noundef nonnull %0, i64 noundef %19)
  %21 = getelementptr inbounds nuw %struct.Argument, ptr %12, i64 %19
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr inbounds nuw i8, ptr %21, i64 16
  %24 = load i64, ptr %23, align 8
  %25 = getelementptr inbounds i8, ptr %1, i64 %24
  %26 = getelementptr inbounds nuw i8, ptr %21, i64 8
  %27 = load ptr, ptr %26, align 8
  %28 = tail call i64 %22(ptr noundef %20, ptr noundef %25, ptr noundef %27)
  %29 = icmp eq i64 %28, 0
  br i1 %29, label %30, label %14

30:                                               ; preds = %14, %18, %11, %3, %7
  %31 = phi i64 [ 0, %3 ], [ 0, %7 ], [ 1, %11 ], [ 1, %14 ], [ 0, %18 ]
  ret i64 %31
}

declare i64 @PyTuple_Size(ptr noundef)

declare ptr @PyTuple_GetItem(ptr noundef, i64 noundef)

define range(i64 0, 2) i64 @basedsl_unpack_repeated(ptr noundef %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %5 = load ptr, ptr %4, align 8
  %6 = icmp eq ptr %5, @PyTuple_Type
  br i1 %6, label %7, label %40

7:                                                ; preds = %3
  %8 = tail call i64 @PyTuple_Size(ptr noundef nonnull %0)
  %9 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %10 = load i64, ptr %9, align 8
  %11 = icmp eq i64 %8, %10
  br i1 %11, label %12, label %40

12:                                               ; preds = %7
  %13 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %14 = load i64, ptr %13, align 8
  %15 = inttoptr i64 %14 to ptr
  %16 = load i64, ptr %2, align 8
  tail call void @llvm.memcpy.p0.p0.i64(ptr align 1 %1, ptr align 1 %15, i64 %16, i1 false)
  %17 = load i64, ptr %9, align 8
  %18 = icmp sgt i64 %17, 0
  br i1 %18, label %19, label %40

19:                                               ; preds = %12, %32
  %20 = phi i64 [ %37, %32 ], [ 0, %12 ]
  %21 = tail call ptr @PyTuple_GetItem(ptr noundef nonnull %0, i64 noundef %20)
  %22 = getelementptr inbounds nuw i8, ptr %21, i64 8
  %23 = load ptr, ptr %22, align 8
  %24 = icmp eq ptr %23, @PyLong_Type
  br i1 %24, label %25, label %40

25:                                               ; preds = %19
  %26 = tail call i64 @PyLong_AsUnsignedLongLong(ptr noundef nonnull %21)
  %27 = icmp eq i64 %26, -1
  br i1 %27, label %28, label %32

28:                                               ; preds = %25
  %29 = tail call ptr @PyErr_Occurred()
  %30 = icmp eq ptr %29, null
  br i1 %30, label %32, label %31

31:                                               ; preds = %28
  tail call void @PyErr_Clear()
  br label %40

32:                                               ; preds = %28, %25
  %33 = getelementptr inbounds nuw i64, ptr %2, i64 %20
  %34 = getelementptr inbounds nuw i8, ptr %33, i64 24
  %35 = load i64, ptr %34, align 8
  %36 = getelementptr inbounds i8, ptr %1, i64 %35
  store i64 %26, ptr %36, align 8
  %37 = add nuw nsw i64 %20, 1
  %38 = load i64, ptr %9, align 8
  %39 = icmp slt i64 %37, %38
  br i1 %39, label %19, label %40

40:                                               ; preds = %32, %19, %12, %31, %3, %7
  %41 = phi i64 [ 0, %7 ], [ 0, %3 ], [ 0, %31 ], [ 1, %12 ], [ 1, %32 ], [ 0, %19 ]
  ret i64 %41
}

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

define range(i64 0, 2) i64 @basedsl_unpack_array(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %5 = load ptr, ptr %4, align 8
  %6 = ptrtoint ptr %5 to i64
  %7 = load i64, ptr %2, align 8
  %8 = icmp eq i64 %7, %6
  br i1 %8, label %9, label %99

9:                                                ; preds = %3
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %11 = load ptr, ptr %10, align 8
  %12 = ptrtoint ptr %11 to i64
  %13 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %14 = load i64, ptr %13, align 8
  %15 = icmp eq i64 %14, %12
  br i1 %15, label %16, label %99

16:                                               ; preds = %9
  %17 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %18 = load i32, ptr %17, align 8
  %19 = sext i32 %18 to i64
  %20 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %21 = load i64, ptr %20, align 8
  %22 = icmp eq i64 %21, %19
  br i1 %22, label %23, label %99

23:                                               ; preds = %16
  %24 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %25 = load i32, ptr %24, align 8
  %26 = sext i32 %25 to i64
  %27 = getelementptr inbounds nuw i8, ptr %2, i64 24
  %28 = load i64, ptr %27, align 8
  %29 = and i64 %28, %26
  %30 = icmp eq i64 %29, %28
  br i1 %30, label %31, label %99

31:                                               ; preds = %23
  %32 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %33 = load ptr, ptr %32, align 8
  %34 = ptrtoint ptr %33 to i64
  %35 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %36 = load i64, ptr %35, align 8
  %37 = add nsw i64 %36, -1
  %38 = and i64 %37, %34
  %39 = icmp eq i64 %38, 0
  br i1 %39, label %40, label %99

40:                                               ; preds = %31
  %41 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %42 = load ptr, ptr %41, align 8
  %43 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %44 = load ptr, ptr %43, align 8
  %45 = getelementptr inbounds nuw i8, ptr %2, i64 40
  %46 = load i64, ptr %45, align 8
  store ptr %33, ptr %1, align 8
  %47 = icmp sgt i64 %46, 0
  br i1 %47, label %48, label %99

48:                                               ; preds = %40
  %49 = getelementptr inbounds nuw i8, ptr %1, i64 8
  br label %50

50:                                               ; preds = %95, %48
  %51 = phi i64 [ %97, %95 ], [ 0, %48 ]
  %52 = phi ptr [ %96, %95 ], [ %49, %48 ]
  %53 = phi ptr [ %54, %95 ], [ %2, %48 ]
  %54 = getelementptr inbounds nuw i8, ptr %53, i64 48
  %55 = load i64, ptr %54, align 8
  %56 = icmp eq i64 %55, 0
  %57 = select i1 %56, ptr %42, ptr %44
  %58 = getelementptr inbounds nuw i8, ptr %53, i64 56
  %59 = load i64, ptr %58, align 8
  %60 = getelementptr inbounds i64, ptr %57, i64 %59
  %61 = load i64, ptr %60, align 8
  %62 = getelementptr inbounds nuw i8, ptr %53, i64 64
  %63 = load i64, ptr %62, align 8
  %64 = icmp eq i64 %63, 1
  br i1 %64, label %69, label %65

65:                                               ; preds = %50
  %66 = srem i64 %61, %63
  %67 = sdiv i64 %61, %63
  %68 = icmp eq i64 %66, 0
  br i1 %68, label %69, label %99

69:                                               ; preds = %65, %50
  %70 = phi i64 [ %61, %50 ], [ %67, %65 ]
  %71 = getelementptr inbounds nuw i8, ptr %53, i64 80
  %72 = load i64, ptr %71, align 8
  %73 = icmp eq i64 %72, 0
  br i1 %73, label %78, label %74

74:                                               ; preds = %69
  %75 = getelementptr inbounds nuw i8, ptr %53, i64 88
  %76 = load i64, ptr %75, align 8
  %77 = icmp eq i64 %70, %76
  br i1 %77, label %78, label %99

78:                                               ; preds = %74, %69
  %79 = getelementptr inbounds nuw i8, ptr %53, i64 72
  %80 = load i64, ptr %79, align 8
  %81 = icmp ne i64 %80, 4
  %82 = add i64 %70, 2147483648
  %83 = icmp ult i64 %82, 4294967296
  %84 = select i1 %81, i1 true, i1 %83
  br i1 %84, label %85, label %99

85:                                               ; preds = %78
  switch i64 %80, label %92 [
    i64 0, label %95
    i64 1, label %86
    i64 2, label %88
    i64 4, label %90
  ]

86:                                               ; preds = %85
  %87 = trunc i64 %70 to i8
  store i8 %87, ptr %52, align 1
  br label %93

88:                                               ; preds = %85
  %89 = trunc i64 %70 to i16
  store i16 %89, ptr %52, align 2
  br label %93

90:                                               ; preds = %85
  %91 = trunc i64 %70 to i32
  store i32 %91, ptr %52, align 4
  br label %93

92:                                               ; preds = %85
  store i64 %70, ptr %52, align 8
  br label %93

93:                                               ; preds = %92, %90, %88, %86
  %94 = getelementptr inbounds nuw i8, ptr %52, i64 8
  br label %95

95:                                               ; preds = %93, %85
  %96 = phi ptr [ %52, %85 ], [ %94, %93 ]
  %97 = add nuw nsw i64 %51, 1
  %98 = icmp eq i64 %97, %46
  br i1 %98, label %99, label %50

99:                                               ; preds = %95, %78, %74, %65, %40, %31, %16, %23, %3, %9
  %100 = phi i64 [ 0, %31 ], [ 0, %3 ], [ 0, %16 ], [ 0, %9 ], [ 0, %23 ], [ 1, %40 ], [ 1, %95 ], [ 0, %78 ], [ 0, %65 ], [ 0, %74 ]
  ret i64 %100
}

define internal fastcc range(i64 0, 2) i64 @store_leaves(ptr noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2, ptr noundef readonly captures(none) %3, i64 noundef %4, ptr noundef writeonly captures(none) initializes((0, 8)) %5) unnamed_addr {
  store ptr %0, ptr %5, align 8
  %7 = icmp sgt i64 %4, 0
  br i1 %7, label %8, label %59

8:                                                ; preds = %6
  %9 = getelementptr inbounds nuw i8, ptr %5, i64 8
  br label %10

10:                                               ; preds = %8, %54
  %11 = phi i64 [ %56, %54 ], [ 0, %8 ]
  %12 = phi ptr [ %55, %54 ], [ %9, %8 ]
  %13 = phi ptr [ %57, %54 ], [ %3, %8 ]
  %14 = load i64, ptr %13, align 8
  %15 = icmp eq i64 %14, 0
  %16 = select i1 %15, ptr %1, ptr %2
  %17 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %18 = load i64, ptr %17, align 8
  %19 = getelementptr inbounds i64, ptr %16, i64 %18
  %20 = load i64, ptr %19, align 8
  %21 = getelementptr inbounds nuw i8, ptr %13, i64 16
  %22 = load i64, ptr %21, align 8
  %23 = icmp eq i64 %22, 1
  br i1 %23, label %28, label %24

24:                                               ; preds = %10
  %25 = srem i64 %20, %22
  %26 = sdiv i64 %20, %22
  %27 = icmp eq i64 %25, 0
  br i1 %27, label %28, label %59

28:                                               ; preds = %24, %10
  %29 = phi i64 [ %20, %10 ], [ %26, %24 ]
  %30 = getelementptr inbounds nuw i8, ptr %13, i64 32
  %31 = load i64, ptr %30, align 8
  %32 = icmp eq i64 %31, 0
  br i1 %32, label %37, label %33

33:                                               ; preds = %28
  %34 = getelementptr inbounds nuw i8, ptr %13, i64 40
  %35 = load i64, ptr %34, align 8
  %36 = icmp eq i64 %29, %35
  br i1 %36, label %37, label %59

37:                                               ; preds = %33, %28
  %38 = getelementptr inbounds nuw i8, ptr %13, i64 24
  %39 = load i64, ptr %38, align 8
  %40 = icmp ne i64 %39, 4
  %41 = add i64 %29, 2147483648
  %42 = icmp ult i64 %41, 4294967296
  %43 = select i1 %40, i1 true, i1 %42
  br i1 %43, label %44, label %59

44:                                               ; preds = %37
  switch i64 %39, label %51 [
    i64 0, label %54
    i64 1, label %45
    i64 2, label %47
    i64 4, label %49
  ]

45:                                               ; preds = %44
  %46 = trunc i64 %29 to i8
  store i8 %46, ptr %12, align 1
  br label %52

47:                                               ; preds = %44
  %48 = trunc i64 %29 to i16
  store i16 %48, ptr %12, align 2
  br label %52

49:                                               ; preds = %44
  %50 = trunc i64 %29 to i32
  store i32 %50, ptr %12, align 4
  br label %52

51:                                               ; preds = %44
  store i64 %29, ptr %12, align 8
  br label %52

52:                                               ; preds = %45, %47, %49, %51
  %53 = getelementptr inbounds nuw i8, ptr %12, i64 8
  br label %54

54:                                               ; preds = %44, %52
  %55 = phi ptr [ %12, %44 ], [ %53, %52 ]
  %56 = add nuw nsw i64 %11, 1
  %57 = getelementptr inbounds nuw i8, ptr %13, i64 48
  %58 = icmp eq i64 %56, %4
  br i1 %58, label %59, label %10

59:                                               ; preds = %54, %33, %24, %37, %6
  %60 = phi i64 [ 1, %6 ], [ 0, %33 ], [ 0, %24 ], [ 0, %37 ], [ 1, %54 ]
  ret i64 %60
}

define range(i64 0, 2) i64 @basedsl_unpack_apart(ptr noundef %0, ptr noundef %1, ptr noundef readonly captures(none) %2) {
  %4 = load i64, ptr %2, align 8
  %5 = inttoptr i64 %4 to ptr
  %6 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %7 = load i64, ptr %6, align 8
  %8 = inttoptr i64 %7 to ptr
  %9 = tail call i64 %5(ptr noundef %0, ptr noundef %1, ptr noundef %8)
  %10 = icmp eq i64 %9, 0
  br i1 %10, label %73, label %11

11:                                               ; preds = %3
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %13 = load ptr, ptr %12, align 8
  %14 = ptrtoint ptr %13 to i64
  %15 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %16 = load i64, ptr %15, align 8
  %17 = icmp eq i64 %16, %14
  br i1 %17, label %18, label %73

18:                                               ; preds = %11
  %19 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %20 = load ptr, ptr %19, align 8
  %21 = ptrtoint ptr %20 to i64
  %22 = getelementptr inbounds nuw i8, ptr %2, i64 24
  %23 = load i64, ptr %22, align 8
  %24 = add nsw i64 %23, %21
  %25 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %26 = load i32, ptr %25, align 8
  %27 = sext i32 %26 to i64
  %28 = icmp sgt i32 %26, 0
  br i1 %28, label %29, label %52

29:                                               ; preds = %18
  %30 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %31 = load ptr, ptr %30, align 8
  %32 = getelementptr inbounds nuw i8, ptr %0, i64 40
  br label %33

33:                                               ; preds = %29, %40
  %34 = phi i64 [ 0, %29 ], [ %50, %40 ]
  %35 = phi i64 [ %24, %29 ], [ %49, %40 ]
  %36 = phi i64 [ %21, %29 ], [ %47, %40 ]
  %37 = getelementptr inbounds nuw i64, ptr %31, i64 %34
  %38 = load i64, ptr %37, align 8
  %39 = icmp eq i64 %38, 0
  br i1 %39, label %73, label %40

40:                                               ; preds = %33
  %41 = add nsw i64 %38, -1
  %42 = load ptr, ptr %32, align 8
  %43 = getelementptr inbounds nuw i64, ptr %42, i64 %34
  %44 = load i64, ptr %43, align 8
  %45 = mul nsw i64 %44, %41
  %46 = tail call i64 @llvm.smin.i64(i64 %45, i64 0)
  %47 = add nsw i64 %46, %36
  %48 = tail call i64 @llvm.smax.i64(i64 %45, i64 0)
  %49 = add nsw i64 %48, %35
  %50 = add nuw nsw i64 %34, 1
  %51 = icmp eq i64 %50, %27
  br i1 %51, label %52, label %33

52:                                               ; preds = %40, %18
  %53 = phi i64 [ %21, %18 ], [ %47, %40 ]
  %54 = phi i64 [ %24, %18 ], [ %49, %40 ]
  %55 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %56 = load i64, ptr %55, align 8
  %57 = icmp sgt i64 %56, 0
  br i1 %57, label %58, label %73

58:                                               ; preds = %52
  %59 = getelementptr inbounds nuw i8, ptr %2, i64 40
  br label %60

60:                                               ; preds = %58, %69
  %61 = phi i64 [ %70, %69 ], [ 0, %58 ]
  %62 = phi ptr [ %71, %69 ], [ %59, %58 ]
  %63 = getelementptr inbounds nuw i8, ptr %62, i64 8
  %64 = load i64, ptr %63, align 8
  %65 = icmp slt i64 %53, %64
  br i1 %65, label %66, label %69

66:                                               ; preds = %60
  %67 = load i64, ptr %62, align 8
  %68 = icmp slt i64 %67, %54
  br i1 %68, label %73, label %69

69:                                               ; preds = %60, %66
  %70 = add nuw nsw i64 %61, 1
  %71 = getelementptr inbounds nuw i8, ptr %62, i64 16
  %72 = icmp eq i64 %70, %56
  br i1 %72, label %73, label %60

73:                                               ; preds = %33, %66, %69, %52, %11, %3
  %74 = phi i64 [ 0, %3 ], [ 0, %11 ], [ 1, %69 ], [ 1, %52 ], [ 0, %66 ], [ 1, %33 ]
  ret i64 %74
}

define range(i64 0, 2) i64 @basedsl_unpack_tensor(ptr noundef %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = alloca %struct.Tensor, align 8
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = ptrtoint ptr %6 to i64
  %8 = load i64, ptr %2, align 8
  %9 = icmp eq i64 %8, %7
  br i1 %9, label %10, label %63

10:                                               ; preds = %3
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  %11 = getelementptr inbounds nuw i8, ptr %4, i64 32
  store ptr null, ptr %11, align 8
  %12 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %13 = load i64, ptr %12, align 8
  %14 = inttoptr i64 %13 to ptr
  %15 = call i32 %14(ptr noundef nonnull %0, ptr noundef nonnull %4)
  %16 = icmp eq i32 %15, 0
  br i1 %16, label %18, label %17

17:                                               ; preds = %10
  call void @PyErr_Clear()
  br label %61

18:                                               ; preds = %10
  %19 = getelementptr inbounds nuw i8, ptr %4, i64 8
  %20 = load i64, ptr %19, align 8
  %21 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %22 = load i64, ptr %21, align 8
  %23 = icmp eq i64 %20, %22
  br i1 %23, label %24, label %61

24:                                               ; preds = %18
  %25 = getelementptr inbounds nuw i8, ptr %4, i64 20
  %26 = load i32, ptr %25, align 4
  %27 = zext i32 %26 to i64
  %28 = getelementptr inbounds nuw i8, ptr %2, i64 24
  %29 = load i64, ptr %28, align 8
  %30 = icmp eq i64 %29, %27
  br i1 %30, label %31, label %61

31:                                               ; preds = %24
  %32 = getelementptr inbounds nuw i8, ptr %4, i64 16
  %33 = load i32, ptr %32, align 8
  %34 = sext i32 %33 to i64
  %35 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %36 = load i64, ptr %35, align 8
  %37 = icmp eq i64 %36, %34
  br i1 %37, label %38, label %61

38:                                               ; preds = %31
  %39 = load ptr, ptr %4, align 8
  %40 = getelementptr inbounds nuw i8, ptr %4, i64 40
  %41 = load i64, ptr %40, align 8
  %42 = getelementptr inbounds nuw i8, ptr %39, i64 %41
  %43 = ptrtoint ptr %42 to i64
  %44 = getelementptr inbounds nuw i8, ptr %2, i64 40
  %45 = load i64, ptr %44, align 8
  %46 = add nsw i64 %45, -1
  %47 = and i64 %46, %43
  %48 = icmp eq i64 %47, 0
  br i1 %48, label %49, label %61

49:                                               ; preds = %38
  %50 = icmp eq i32 %33, 0
  %51 = load ptr, ptr %11, align 8
  %52 = icmp ne ptr %51, null
  %53 = select i1 %50, i1 true, i1 %52
  br i1 %53, label %54, label %61

54:                                               ; preds = %49
  %55 = getelementptr inbounds nuw i8, ptr %4, i64 24
  %56 = load ptr, ptr %55, align 8
  %57 = getelementptr inbounds nuw i8, ptr %2, i64 56
  %58 = getelementptr inbounds nuw i8, ptr %2, i64 48
  %59 = load i64, ptr %58, align 8
  %60 = call fastcc i64 @store_leaves(ptr noundef %42, ptr noundef %56, ptr noundef %51, ptr noundef nonnull %57, i64 noundef %59, ptr noundef %1)
  br label %61

61:                                               ; preds = %54, %38, %49, %18, %24, %31, %17
  %62 = phi i64 [ 0, %17 ], [ 0, %18 ], [ 0, %31 ], [ 0, %24 ], [ 0, %38 ], [ %60, %54 ], [ 0, %49 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  br label %63

63:                                               ; preds = %3, %61
  %64 = phi i64 [ %62, %61 ], [ 0, %3 ]
  ret i64 %64
}

define range(i64 0, 2) i64 @basedsl_unpack_python(ptr noundef %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = load i64, ptr %2, align 8
  %5 = inttoptr i64 %4 to ptr
  %6 = tail call ptr @PyObject_CallOneArg(ptr noundef %5, ptr noundef %0)
  %7 = icmp eq ptr %6, null
  br i1 %7, label %8, label %9

8:                                                ; preds = %3
  tail call void @PyErr_Clear()
  br label %23

9:                                                ; preds = %3
  %10 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %11 = load ptr, ptr %10, align 8
  %12 = icmp eq ptr %11, @PyBytes_Type
  br i1 %12, label %13, label %21

13:                                               ; preds = %9
  %14 = tail call i64 @PyBytes_Size(ptr noundef nonnull %6)
  %15 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %16 = load i64, ptr %15, align 8
  %17 = icmp eq i64 %14, %16
  br i1 %17, label %18, label %21

18:                                               ; preds = %13
  %19 = tail call ptr @PyBytes_AsString(ptr noundef nonnull %6)
  %20 = load i64, ptr %15, align 8
  tail call void @llvm.memcpy.p0.p0.i64(ptr align 1 %1, ptr align 1 %19, i64 %20, i1 false)
  br label %21

21:                                               ; preds = %9, %18, %13
  %22 = phi i64 [ 0, %13 ], [ 1, %18 ], [ 0, %9 ]
  tail call void @Py_DecRef(ptr noundef nonnull %6)
  br label %23

23:                                               ; preds = %21, %8
  %24 = phi i64 [ %22, %21 ], [ 0, %8 ]
  ret i64 %24
}

declare ptr @PyObject_CallOneArg(ptr noundef, ptr noundef)

declare i64 @PyBytes_Size(ptr noundef)

declare ptr @PyBytes_AsString(ptr noundef)

declare void @Py_DecRef(ptr noundef)

define ptr @basedsl_call(ptr noundef %0, ptr noundef %1, i64 noundef %2, ptr noundef %3) {
  %5 = alloca [1024 x i8], align 16
  %6 = alloca [32 x ptr], align 16
  %7 = tail call ptr @PyBytes_AsString(ptr noundef %0)
  %8 = load ptr, ptr %7, align 8
  %9 = load i64, ptr %8, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  %10 = getelementptr inbounds nuw i8, ptr %8, i64 32
  %11 = load ptr, ptr %10, align 8
  %12 = load i64, ptr %11, align 8
  %13 = icmp eq i64 %12, 0
  br i1 %13, label %14, label %279

14:                                               ; preds = %4
  %15 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %16 = load i64, ptr %15, align 8
  %17 = icmp sgt i64 %2, %16
  br i1 %17, label %279, label %18

18:                                               ; preds = %14
  %19 = icmp ne ptr %3, null
  %20 = icmp slt i64 %2, %9
  %21 = select i1 %19, i1 true, i1 %20
  br i1 %21, label %22, label %84

22:                                               ; preds = %18
  %23 = icmp sgt i64 %9, 0
  br i1 %23, label %26, label %24

24:                                               ; preds = %32, %22
  %25 = icmp eq ptr %3, null
  br i1 %25, label %43, label %37

26:                                               ; preds = %22, %32
  %27 = phi i64 [ %35, %32 ], [ 0, %22 ]
  %28 = icmp slt i64 %27, %2
  br i1 %28, label %29, label %32

29:                                               ; preds = %26
  %30 = getelementptr inbounds nuw ptr, ptr %1, i64 %27
  %31 = load ptr, ptr %30, align 8
  br label %32

32:                                               ; preds = %29, %26
  %33 = phi ptr [ %31, %29 ], [ null, %26 ]
  %34 = getelementptr inbounds nuw ptr, ptr %6, i64 %27
  store ptr %33, ptr %34, align 8
  %35 = add nuw nsw i64 %27, 1
  %36 = icmp eq i64 %35, %9
  br i1 %36, label %24, label %26

37:                                               ; preds = %24
  %38 = tail call i64 @PyTuple_Size(ptr noundef nonnull %3)
  %39 = icmp sgt i64 %38, 0
  br i1 %39, label %40, label %43

40:                                               ; preds = %37
  %41 = getelementptr inbounds nuw i8, ptr %8, i64 16
  %42 = getelementptr ptr, ptr %1, i64 %2
  br label %46

43:                                               ; preds = %66, %37, %24
  %44 = getelementptr inbounds nuw i8, ptr %8, i64 24
  %45 = icmp slt i64 %9, 1
  br i1 %45, label %84, label %71

46:                                               ; preds = %66, %40
  %47 = phi i64 [ 0, %40 ], [ %69, %66 ]
  %48 = tail call ptr @PyTuple_GetItem(ptr noundef nonnull %3, i64 noundef %47)
  br i1 %23, label %49, label %59

49:                                               ; preds = %46
  %50 = load ptr, ptr %41, align 8
  br label %51

51:                                               ; preds = %56, %49
  %52 = phi i64 [ 0, %49 ], [ %57, %56 ]
  %53 = getelementptr inbounds nuw ptr, ptr %50, i64 %52
  %54 = load ptr, ptr %53, align 8
  %55 = icmp eq ptr %54, %48
  br i1 %55, label %59, label %56

56:                                               ; preds = %51
  %57 = add nuw nsw i64 %52, 1
  %58 = icmp eq i64 %57, %9
  br i1 %58, label %279, label %51

59:                                               ; preds = %51, %46
  %60 = phi i64 [ 0, %46 ], [ %52, %51 ]
  %61 = icmp eq i64 %60, %9
  br i1 %61, label %279, label %62

62:                                               ; preds = %59
  %63 = getelementptr inbounds nuw ptr, ptr %6, i64 %60
  %64 = load ptr, ptr %63, align 8
  %65 = icmp eq ptr %64, null
  br i1 %65, label %66, label %279

66:                                               ; preds = %62
  %67 = getelementptr ptr, ptr %42, i64 %47
  %68 = load ptr, ptr %67, align 8
  store ptr %68, ptr %63, align 8
  %69 = add nuw nsw i64 %47, 1
  %70 = icmp eq i64 %69, %38
  br i1 %70, label %43, label %46

71:                                               ; preds = %43, %81
  %72 = phi i64 [ %82, %81 ], [ 0, %43 ]
  %73 = getelementptr inbounds nuw ptr, ptr %6, i64 %72
  %74 = load ptr, ptr %73, align 8
  %75 = icmp eq ptr %74, null
  br i1 %75, label %76, label %81

76:                                               ; preds = %71
  %77 = load ptr, ptr %44, align 8
  %78 = getelementptr inbounds nuw ptr, ptr %77, i64 %72
  %79 = load ptr, ptr %78, align 8
  store ptr %79, ptr %73, align 8
  %80 = icmp eq ptr %79, null
  br i1 %80, label %279, label %81

81:                                               ; preds = %76, %71
  %82 = add nuw nsw i64 %72, 1
  %83 = icmp eq i64 %82, %9
  br i1 %83, label %84, label %71

84:                                               ; preds = %81, %43, %18
  %85 = phi ptr [ %1, %18 ], [ %6, %43 ], [ %6, %81 ]
  %86 = getelementptr inbounds nuw i8, ptr %8, i64 48
  %87 = load i64, ptr %86, align 8
  %88 = icmp sgt i64 %87, 0
  br i1 %88, label %89, label %279

89:                                               ; preds = %84
  %90 = getelementptr inbounds nuw i8, ptr %8, i64 56
  %91 = icmp sgt i64 %9, 0
  br label %92

92:                                               ; preds = %89, %275
  %93 = phi i64 [ 0, %89 ], [ %276, %275 ]
  %94 = getelementptr inbounds nuw ptr, ptr %90, i64 %93
  %95 = load ptr, ptr %94, align 8
  br i1 %91, label %96, label %101

96:                                               ; preds = %92
  %97 = getelementptr inbounds nuw i8, ptr %95, i64 16
  br label %106

98:                                               ; preds = %106
  %99 = add nuw nsw i64 %107, 1
  %100 = icmp eq i64 %99, %9
  br i1 %100, label %101, label %106

101:                                              ; preds = %98, %92
  %102 = load i64, ptr %95, align 8
  %103 = icmp sgt i64 %102, 0
  br i1 %103, label %104, label %202

104:                                              ; preds = %101
  %105 = getelementptr inbounds nuw i8, ptr %95, i64 8
  br label %124

106:                                              ; preds = %98, %96
  %107 = phi i64 [ 0, %96 ], [ %99, %98 ]
  %108 = load ptr, ptr %97, align 8
  %109 = getelementptr inbounds nuw %struct.Argument, ptr %108, i64 %107
  %110 = load ptr, ptr %109, align 8
  %111 = getelementptr inbounds nuw ptr, ptr %85, i64 %107
  %112 = load ptr, ptr %111, align 8
  %113 = getelementptr inbounds nuw i8, ptr %109, i64 16
  %114 = load i64, ptr %113, align 8
  %115 = getelementptr inbounds i8, ptr %5, i64 %114
  %116 = getelementptr inbounds nuw i8, ptr %109, i64 8
  %117 = load ptr, ptr %116, align 8
  %118 = call i64 %110(ptr noundef %112, ptr noundef nonnull %115, ptr noundef %117)
  %119 = icmp eq i64 %118, 0
  br i1 %119, label %275, label %98

120:                                              ; preds = %194, %184, %176, %174, %165, %152, %148, %129
  %121 = add nuw nsw i64 %125, 1
  %122 = load i64, ptr %95, align 8
  %123 = icmp slt i64 %121, %122
  br i1 %123, label %124, label %202

124:                                              ; preds = %120, %104
  %125 = phi i64 [ 0, %104 ], [ %121, %120 ]
  %126 = load ptr, ptr %105, align 8
  %127 = getelementptr inbounds nuw %struct.Guard, ptr %126, i64 %125
  %128 = load i64, ptr %127, align 8
  switch i64 %128, label %275 [
    i64 0, label %194
    i64 1, label %129
    i64 2, label %138
    i64 3, label %152
    i64 4, label %160
    i64 5, label %169
    i64 6, label %176
    i64 7, label %184
  ]

129:                                              ; preds = %124
  %130 = getelementptr inbounds nuw i8, ptr %127, i64 8
  %131 = load ptr, ptr %130, align 8
  %132 = load i32, ptr %131, align 4
  %133 = getelementptr inbounds nuw i8, ptr %127, i64 24
  %134 = load ptr, ptr %133, align 8
  %135 = ptrtoint ptr %134 to i64
  %136 = trunc i64 %135 to i32
  %137 = icmp eq i32 %132, %136
  br i1 %137, label %120, label %275

138:                                              ; preds = %124
  %139 = getelementptr inbounds nuw i8, ptr %127, i64 8
  %140 = load ptr, ptr %139, align 8
  %141 = getelementptr inbounds nuw i8, ptr %127, i64 16
  %142 = load ptr, ptr %141, align 8
  %143 = call ptr @PyDict_GetItemWithError(ptr noundef %140, ptr noundef %142)
  %144 = icmp eq ptr %143, null
  br i1 %144, label %145, label %148

145:                                              ; preds = %138
  %146 = call ptr @PyErr_Occurred()
  %147 = icmp eq ptr %146, null
  br i1 %147, label %148, label %201

148:                                              ; preds = %145, %138
  %149 = getelementptr inbounds nuw i8, ptr %127, i64 24
  %150 = load ptr, ptr %149, align 8
  %151 = icmp eq ptr %143, %150
  br i1 %151, label %120, label %275

152:                                              ; preds = %124
  %153 = getelementptr inbounds nuw i8, ptr %127, i64 8
  %154 = load ptr, ptr %153, align 8
  %155 = call i64 @PyDict_Size(ptr noundef %154)
  %156 = getelementptr inbounds nuw i8, ptr %127, i64 24
  %157 = load ptr, ptr %156, align 8
  %158 = ptrtoint ptr %157 to i64
  %159 = icmp eq i64 %155, %158
  br i1 %159, label %120, label %275

160:                                              ; preds = %124
  %161 = getelementptr inbounds nuw i8, ptr %127, i64 8
  %162 = load ptr, ptr %161, align 8
  %163 = call ptr @PyObject_GenericGetDict(ptr noundef %162, ptr noundef null)
  %164 = icmp eq ptr %163, null
  br i1 %164, label %201, label %165

165:                                              ; preds = %160
  call void @Py_DecRef(ptr noundef nonnull %163)
  %166 = getelementptr inbounds nuw i8, ptr %127, i64 24
  %167 = load ptr, ptr %166, align 8
  %168 = icmp eq ptr %163, %167
  br i1 %168, label %120, label %275

169:                                              ; preds = %124
  %170 = getelementptr inbounds nuw i8, ptr %127, i64 8
  %171 = load ptr, ptr %170, align 8
  %172 = call ptr @PyObject_CallNoArgs(ptr noundef %171)
  %173 = icmp eq ptr %172, null
  br i1 %173, label %201, label %174

174:                                              ; preds = %169
  call void @Py_DecRef(ptr noundef nonnull %172)
  %175 = icmp eq ptr %172, @_Py_TrueStruct
  br i1 %175, label %120, label %275

176:                                              ; preds = %124
  %177 = getelementptr inbounds nuw i8, ptr %127, i64 8
  %178 = load ptr, ptr %177, align 8
  %179 = call i64 @PyList_Size(ptr noundef %178)
  %180 = getelementptr inbounds nuw i8, ptr %127, i64 24
  %181 = load ptr, ptr %180, align 8
  %182 = ptrtoint ptr %181 to i64
  %183 = icmp eq i64 %179, %182
  br i1 %183, label %120, label %275

184:                                              ; preds = %124
  %185 = getelementptr inbounds nuw i8, ptr %127, i64 8
  %186 = load ptr, ptr %185, align 8
  %187 = getelementptr inbounds nuw i8, ptr %127, i64 16
  %188 = load ptr, ptr %187, align 8
  %189 = ptrtoint ptr %188 to i64
  %190 = call ptr @PyList_GetItem(ptr noundef %186, i64 noundef %189)
  %191 = getelementptr inbounds nuw i8, ptr %127, i64 24
  %192 = load ptr, ptr %191, align 8
  %193 = icmp eq ptr %190, %192
  br i1 %193, label %120, label %275

194:                                              ; preds = %124
  %195 = getelementptr inbounds nuw i8, ptr %127, i64 8
  %196 = load ptr, ptr %195, align 8
  %197 = load ptr, ptr %196, align 8
  %198 = getelementptr inbounds nuw i8, ptr %127, i64 24
  %199 = load ptr, ptr %198, align 8
  %200 = icmp eq ptr %197, %199
  br i1 %200, label %120, label %275

201:                                              ; preds = %169, %160, %145
  call void @PyErr_Clear()
  br label %275

202:                                              ; preds = %101, %120
  %203 = getelementptr inbounds nuw i8, ptr %95, i64 96
  %204 = load i64, ptr %203, align 8
  %205 = icmp eq i64 %204, 0
  br i1 %205, label %210, label %206

206:                                              ; preds = %202
  %207 = call ptr @PyEval_SaveThread()
  %208 = getelementptr inbounds nuw i8, ptr %95, i64 24
  %209 = load ptr, ptr %208, align 8
  call void %209(ptr noundef nonnull %5)
  call void @PyEval_RestoreThread(ptr noundef %207)
  br label %213

210:                                              ; preds = %202
  %211 = getelementptr inbounds nuw i8, ptr %95, i64 24
  %212 = load ptr, ptr %211, align 8
  call void %212(ptr noundef nonnull %5)
  br label %213

213:                                              ; preds = %210, %206
  %214 = getelementptr inbounds nuw i8, ptr %95, i64 80
  %215 = load ptr, ptr %214, align 8
  %216 = load i64, ptr %215, align 8
  %217 = icmp eq i64 %216, 0
  br i1 %217, label %232, label %218

218:                                              ; preds = %213
  %219 = getelementptr inbounds nuw i8, ptr %95, i64 88
  %220 = load ptr, ptr %219, align 8
  %221 = icmp eq ptr %220, null
  br i1 %221, label %232, label %222

222:                                              ; preds = %218
  %223 = call ptr @PyObject_CallNoArgs(ptr noundef nonnull %220)
  %224 = icmp ne ptr %223, null
  %225 = icmp ne ptr %223, @_Py_NoneStruct
  %226 = and i1 %224, %225
  br i1 %226, label %227, label %230

227:                                              ; preds = %222
  %228 = getelementptr inbounds nuw i8, ptr %223, i64 8
  %229 = load ptr, ptr %228, align 8
  call void @PyErr_SetObject(ptr noundef %229, ptr noundef nonnull %223)
  br label %231

230:                                              ; preds = %222
  br i1 %224, label %231, label %283

231:                                              ; preds = %230, %227
  call void @Py_DecRef(ptr noundef nonnull %223)
  br i1 %225, label %283, label %232

232:                                              ; preds = %231, %218, %213
  %233 = getelementptr inbounds nuw i8, ptr %95, i64 32
  %234 = load i64, ptr %233, align 8
  switch i64 %234, label %263 [
    i64 0, label %235
    i64 1, label %236
    i64 2, label %240
  ]

235:                                              ; preds = %232
  call void @Py_IncRef(ptr noundef nonnull @_Py_NoneStruct)
  br label %283

236:                                              ; preds = %232
  %237 = getelementptr inbounds nuw i8, ptr %95, i64 48
  %238 = load ptr, ptr %237, align 8
  %239 = call fastcc ptr @wrap(ptr noundef %238, ptr noundef nonnull %5)
  br label %283

240:                                              ; preds = %232
  %241 = getelementptr inbounds nuw i8, ptr %95, i64 40
  %242 = load i64, ptr %241, align 8
  %243 = call ptr @PyTuple_New(i64 noundef %242)
  %244 = icmp eq ptr %243, null
  br i1 %244, label %283, label %245

245:                                              ; preds = %240
  %246 = getelementptr inbounds nuw i8, ptr %95, i64 48
  %247 = load i64, ptr %241, align 8
  %248 = icmp sgt i64 %247, 0
  br i1 %248, label %253, label %283

249:                                              ; preds = %259
  %250 = add nuw nsw i64 %254, 1
  %251 = load i64, ptr %241, align 8
  %252 = icmp slt i64 %250, %251
  br i1 %252, label %253, label %283

253:                                              ; preds = %245, %249
  %254 = phi i64 [ %250, %249 ], [ 0, %245 ]
  %255 = load ptr, ptr %246, align 8
  %256 = getelementptr inbounds nuw %struct.Result, ptr %255, i64 %254
  %257 = call fastcc ptr @wrap(ptr noundef %256, ptr noundef nonnull %5)
  %258 = icmp eq ptr %257, null
  br i1 %258, label %262, label %259

259:                                              ; preds = %253
  %260 = call i32 @PyTuple_SetItem(ptr noundef nonnull %243, i64 noundef %254, ptr noundef nonnull %257)
  %261 = icmp eq i32 %260, 0
  br i1 %261, label %249, label %262

262:                                              ; preds = %259, %253
  call void @Py_DecRef(ptr noundef nonnull %243)
  br label %283

263:                                              ; preds = %232
  %264 = getelementptr inbounds nuw i8, ptr %95, i64 56
  %265 = load i64, ptr %264, align 8
  %266 = getelementptr inbounds i8, ptr %5, i64 %265
  %267 = getelementptr inbounds nuw i8, ptr %95, i64 64
  %268 = load i64, ptr %267, align 8
  %269 = call ptr @PyBytes_FromStringAndSize(ptr noundef nonnull %266, i64 noundef %268)
  %270 = icmp eq ptr %269, null
  br i1 %270, label %283, label %271

271:                                              ; preds = %263
  %272 = getelementptr inbounds nuw i8, ptr %95, i64 72
  %273 = load ptr, ptr %272, align 8
  %274 = call ptr @PyObject_CallOneArg(ptr noundef %273, ptr noundef nonnull %269)
  call void @Py_DecRef(ptr noundef nonnull %269)
  br label %283

275:                                              ; preds = %106, %124, %148, %176, %174, %165, %152, %184, %129, %194, %201
  %276 = add nuw nsw i64 %93, 1
  %277 = load i64, ptr %86, align 8
  %278 = icmp slt i64 %276, %277
  br i1 %278, label %92, label %279

279:                                              ; preds = %59, %62, %56, %76, %275, %84, %4, %14
  %280 = getelementptr inbounds nuw i8, ptr %8, i64 40
  %281 = load ptr, ptr %280, align 8
  %282 = call ptr @PyObject_Vectorcall(ptr noundef %281, ptr noundef %1, i64 noundef %2, ptr noundef %3)
  br label %283

283:                                              ; preds = %249, %271, %263, %262, %245, %240, %236, %235, %231, %230, %279
  %284 = phi ptr [ %282, %279 ], [ null, %231 ], [ null, %230 ], [ %243, %245 ], [ null, %240 ], [ null, %262 ], [ %274, %271 ], [ %239, %236 ], [ @_Py_NoneStruct, %235 ], [ null, %263 ], [ %243, %249 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  ret ptr %284
}

declare ptr @PyObject_Vectorcall(ptr noundef, ptr noundef, i64 noundef, ptr noundef)

declare ptr @PyDict_GetItemWithError(ptr noundef, ptr noundef)

declare i64 @PyDict_Size(ptr noundef)

declare ptr @PyObject_GenericGetDict(ptr noundef, ptr noundef)

declare ptr @PyObject_CallNoArgs(ptr noundef)

declare i64 @PyList_Size(ptr noundef)

declare ptr @PyList_GetItem(ptr noundef, i64 noundef)

declare ptr @PyEval_SaveThread()

declare void @PyEval_RestoreThread(ptr noundef)

declare void @PyErr_SetObject(ptr noundef, ptr noundef)

define internal fastcc ptr @wrap(ptr noundef readonly captures(none) %0, ptr noundef nonnull readonly captures(none) %1) unnamed_addr {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %4 = load i64, ptr %3, align 8
  %5 = getelementptr inbounds i8, ptr %1, i64 %4
  %6 = load i64, ptr %0, align 8
  switch i64 %6, label %45 [
    i64 0, label %7
    i64 1, label %11
    i64 2, label %15
    i64 3, label %19
    i64 4, label %23
    i64 5, label %26
    i64 6, label %30
    i64 7, label %34
    i64 8, label %38
    i64 9, label %41
  ]

7:                                                ; preds = %2
  %8 = load i8, ptr %5, align 1
  %9 = icmp eq i8 %8, 0
  %10 = select i1 %9, ptr @_Py_FalseStruct, ptr @_Py_TrueStruct
  tail call void @Py_IncRef(ptr noundef nonnull %10)
  br label %48

11:                                               ; preds = %2
  %12 = load i8, ptr %5, align 1
  %13 = sext i8 %12 to i64
  %14 = tail call ptr @PyLong_FromLongLong(i64 noundef %13)
  br label %48

15:                                               ; preds = %2
  %16 = load i16, ptr %5, align 2
  %17 = sext i16 %16 to i64
  %18 = tail call ptr @PyLong_FromLongLong(i64 noundef %17)
  br label %48

19:                                               ; preds = %2
  %20 = load i32, ptr %5, align 4
  %21 = sext i32 %20 to i64
  %22 = tail call ptr @PyLong_FromLongLong(i64 noundef %21)
  br label %48

23:                                               ; preds = %2
  %24 = load i64, ptr %5, align 8
  %25 = tail call ptr @PyLong_FromLongLong(i64 noundef %24)
  br label %48

26:                                               ; preds = %2
  %27 = load i8, ptr %5, align 1
  %28 = zext i8 %27 to i64
  %29 = tail call ptr @PyLong_FromLongLong(i64 noundef %28)
  br label %48

30:                                               ; preds = %2
  %31 = load i16, ptr %5, align 2
  %32 = zext i16 %31 to i64
  %33 = tail call ptr @PyLong_FromLongLong(i64 noundef %32)
  br label %48

34:                                               ; preds = %2
  %35 = load i32, ptr %5, align 4
  %36 = zext i32 %35 to i64
  %37 = tail call ptr @PyLong_FromLongLong(i64 noundef %36)
  br label %48

38:                                               ; preds = %2
  %39 = load i64, ptr %5, align 8
  %40 = tail call ptr @PyLong_FromUnsignedLongLong(i64 noundef %39)
  br label %48

41:                                               ; preds = %2
  %42 = load float, ptr %5, align 4
  %43 = fpext float %42 to double
  %44 = tail call ptr @PyFloat_FromDouble(double noundef %43)
  br label %48

45:                                               ; preds = %2
  %46 = load double, ptr %5, align 8
  %47 = tail call ptr @PyFloat_FromDouble(double noundef %46)
  br label %48

48:                                               ; preds = %45, %41, %38, %34, %30, %26, %23, %19, %15, %11, %7
  %49 = phi ptr [ %47, %45 ], [ %10, %7 ], [ %14, %11 ], [ %18, %15 ], [ %22, %19 ], [ %25, %23 ], [ %29, %26 ], [ %33, %30 ], [ %37, %34 ], [ %40, %38 ], [ %44, %41 ]
  ret ptr %49
}

declare ptr @PyTuple_New(i64 noundef)

declare i32 @PyTuple_SetItem(ptr noundef, i64 noundef, ptr noundef)

declare ptr @PyBytes_FromStringAndSize(ptr noundef, i64 noundef)

declare void @Py_IncRef(ptr noundef)

declare ptr @PyLong_FromLongLong(i64 noundef)

declare ptr @PyLong_FromUnsignedLongLong(i64 noundef)

declare ptr @PyFloat_FromDouble(double noundef)

declare i64 @llvm.smin.i64(i64, i64)

declare i64 @llvm.smax.i64(i64, i64)
