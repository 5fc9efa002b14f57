; made of call.c 8e10a0ba170f0ffa6714ceb98c96da7c080595bcb9d20582c0166a147d7eb615
%struct.Object = type { i64, ptr }
%struct.Argument = type { ptr, ptr, i64 }
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
  br i1 %14, label %15, label %29

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
  br label %29

22:                                               ; preds = %18, %15, %7
  %23 = phi double [ %8, %7 ], [ -1.000000e+00, %18 ], [ %16, %15 ]
  %24 = load i64, ptr %2, align 8
  %25 = icmp eq i64 %24, 4
  br i1 %25, label %26, label %28

26:                                               ; preds = %22
  %27 = fptrunc double %23 to float
  store float %27, ptr %1, align 4
  br label %29

28:                                               ; preds = %22
  store double %23, ptr %1, align 8
  br label %29

29:                                               ; preds = %26, %28, %9, %21
  %30 = phi i64 [ 0, %9 ], [ 0, %21 ], [ 1, %28 ], [ 1, %26 ]
  ret i64 %30
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

define range(i64 0, 2) i64 @basedsl_unpack_array(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %5 = load ptr, ptr %4, align 8
  %6 = ptrtoint ptr %5 to i64
  %7 = load i64, ptr %2, align 8
  %8 = icmp eq i64 %7, %6
  br i1 %8, label %9, label %100

9:                                                ; preds = %3
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %11 = load ptr, ptr %10, align 8
  %12 = ptrtoint ptr %11 to i64
  %13 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %14 = load i64, ptr %13, align 8
  %15 = icmp eq i64 %14, %12
  br i1 %15, label %16, label %100

16:                                               ; preds = %9
  %17 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %18 = load i32, ptr %17, align 8
  %19 = sext i32 %18 to i64
  %20 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %21 = load i64, ptr %20, align 8
  %22 = icmp eq i64 %21, %19
  br i1 %22, label %23, label %100

23:                                               ; preds = %16
  %24 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %25 = load i32, ptr %24, align 8
  %26 = sext i32 %25 to i64
  %27 = getelementptr inbounds nuw i8, ptr %2, i64 24
  %28 = load i64, ptr %27, align 8
  %29 = and i64 %28, %26
  %30 = icmp eq i64 %29, %28
  br i1 %30, label %31, label %100

31:                                               ; preds = %23
  %32 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %33 = load ptr, ptr %32, align 8
  %34 = ptrtoint ptr %33 to i64
  %35 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %36 = load i64, ptr %35, align 8
  %37 = add nsw i64 %36, -1
  %38 = and i64 %37, %34
  %39 = icmp eq i64 %38, 0
  br i1 %39, label %40, label %100

40:                                               ; preds = %31
  store ptr %33, ptr %1, align 8
  %41 = getelementptr inbounds nuw i8, ptr %2, i64 40
  %42 = load i64, ptr %41, align 8
  %43 = icmp slt i64 %42, 1
  br i1 %43, label %100, label %44

44:                                               ; preds = %40
  %45 = getelementptr inbounds nuw i8, ptr %1, i64 8
  br label %46

46:                                               ; preds = %44, %95
  %47 = phi i64 [ %96, %95 ], [ %42, %44 ]
  %48 = phi i64 [ %98, %95 ], [ 0, %44 ]
  %49 = phi ptr [ %51, %95 ], [ %2, %44 ]
  %50 = phi ptr [ %97, %95 ], [ %45, %44 ]
  %51 = getelementptr inbounds nuw i8, ptr %49, i64 48
  %52 = load i64, ptr %51, align 8
  %53 = icmp eq i64 %52, 0
  %54 = select i1 %53, i64 32, i64 40
  %55 = getelementptr inbounds nuw i8, ptr %0, i64 %54
  %56 = load ptr, ptr %55, align 8
  %57 = getelementptr inbounds nuw i8, ptr %49, i64 56
  %58 = load i64, ptr %57, align 8
  %59 = getelementptr inbounds i64, ptr %56, i64 %58
  %60 = load i64, ptr %59, align 8
  %61 = getelementptr inbounds nuw i8, ptr %49, i64 64
  %62 = load i64, ptr %61, align 8
  %63 = icmp eq i64 %62, 1
  br i1 %63, label %68, label %64

64:                                               ; preds = %46
  %65 = srem i64 %60, %62
  %66 = sdiv i64 %60, %62
  %67 = icmp eq i64 %65, 0
  br i1 %67, label %68, label %100

68:                                               ; preds = %64, %46
  %69 = phi i64 [ %60, %46 ], [ %66, %64 ]
  %70 = getelementptr inbounds nuw i8, ptr %49, i64 80
  %71 = load i64, ptr %70, align 8
  %72 = icmp eq i64 %71, 0
  br i1 %72, label %77, label %73

73:                                               ; preds = %68
  %74 = getelementptr inbounds nuw i8, ptr %49, i64 88
  %75 = load i64, ptr %74, align 8
  %76 = icmp eq i64 %69, %75
  br i1 %76, label %77, label %100

77:                                               ; preds = %73, %68
  %78 = getelementptr inbounds nuw i8, ptr %49, i64 72
  %79 = load i64, ptr %78, align 8
  %80 = icmp ne i64 %79, 4
  %81 = add i64 %69, 2147483648
  %82 = icmp ult i64 %81, 4294967296
  %83 = select i1 %80, i1 true, i1 %82
  br i1 %83, label %84, label %100

84:                                               ; preds = %77
  switch i64 %79, label %91 [
    i64 0, label %95
    i64 1, label %85
    i64 2, label %87
    i64 4, label %89
  ]

85:                                               ; preds = %84
  %86 = trunc i64 %69 to i8
  store i8 %86, ptr %50, align 1
  br label %92

87:                                               ; preds = %84
  %88 = trunc i64 %69 to i16
  store i16 %88, ptr %50, align 2
  br label %92

89:                                               ; preds = %84
  %90 = trunc i64 %69 to i32
  store i32 %90, ptr %50, align 4
  br label %92

91:                                               ; preds = %84
  store i64 %69, ptr %50, align 8
  br label %92

92:                                               ; preds = %85, %87, %89, %91
  %93 = getelementptr inbounds nuw i8, ptr %50, i64 8
  %94 = load i64, ptr %41, align 8
  br label %95

95:                                               ; preds = %84, %92
  %96 = phi i64 [ %47, %84 ], [ %94, %92 ]
  %97 = phi ptr [ %50, %84 ], [ %93, %92 ]
  %98 = add nuw nsw i64 %48, 1
  %99 = icmp slt i64 %98, %96
  br i1 %99, label %46, label %100

100:                                              ; preds = %77, %64, %73, %95, %40, %31, %16, %23, %3, %9
  %101 = phi i64 [ 0, %31 ], [ 0, %3 ], [ 0, %16 ], [ 0, %9 ], [ 0, %23 ], [ 1, %40 ], [ 0, %77 ], [ 0, %64 ], [ 0, %73 ], [ 1, %95 ]
  ret i64 %101
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

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

declare void @Py_DecRef(ptr noundef)

define ptr @basedsl_call(ptr noundef %0, ptr noundef %1, i64 noundef %2, ptr noundef %3) {
  %5 = alloca [1024 x i8], align 16
  %6 = alloca [32 x ptr], align 16
  %7 = tail call ptr @PyTuple_GetItem(ptr noundef %0, i64 noundef 0)
  %8 = tail call ptr @PyLong_AsVoidPtr(ptr noundef %7)
  %9 = load i64, ptr %8, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  %10 = icmp eq ptr %3, null
  br i1 %10, label %11, label %235

11:                                               ; preds = %4
  %12 = getelementptr inbounds nuw i8, ptr %8, i64 16
  %13 = load ptr, ptr %12, align 8
  %14 = load i64, ptr %13, align 8
  %15 = icmp ne i64 %14, 0
  %16 = icmp sgt i64 %2, %9
  %17 = select i1 %15, i1 true, i1 %16
  br i1 %17, label %235, label %18

18:                                               ; preds = %11
  %19 = icmp slt i64 %2, %9
  br i1 %19, label %20, label %38

20:                                               ; preds = %18
  %21 = icmp sgt i64 %9, 0
  br i1 %21, label %22, label %38

22:                                               ; preds = %20
  %23 = getelementptr inbounds nuw i8, ptr %8, i64 8
  br label %27

24:                                               ; preds = %32
  %25 = add nuw nsw i64 %28, 1
  %26 = icmp eq i64 %25, %9
  br i1 %26, label %38, label %27

27:                                               ; preds = %22, %24
  %28 = phi i64 [ 0, %22 ], [ %25, %24 ]
  %29 = icmp slt i64 %28, %2
  br i1 %29, label %32, label %30

30:                                               ; preds = %27
  %31 = load ptr, ptr %23, align 8
  br label %32

32:                                               ; preds = %27, %30
  %33 = phi ptr [ %31, %30 ], [ %1, %27 ]
  %34 = getelementptr inbounds nuw ptr, ptr %33, i64 %28
  %35 = load ptr, ptr %34, align 8
  %36 = getelementptr inbounds nuw ptr, ptr %6, i64 %28
  store ptr %35, ptr %36, align 8
  %37 = icmp eq ptr %35, null
  br i1 %37, label %235, label %24

38:                                               ; preds = %24, %20, %18
  %39 = phi ptr [ %1, %18 ], [ %6, %20 ], [ %6, %24 ]
  %40 = getelementptr inbounds nuw i8, ptr %8, i64 32
  %41 = load i64, ptr %40, align 8
  %42 = icmp sgt i64 %41, 0
  br i1 %42, label %43, label %235

43:                                               ; preds = %38
  %44 = getelementptr inbounds nuw i8, ptr %8, i64 40
  %45 = icmp sgt i64 %9, 0
  br label %46

46:                                               ; preds = %43, %231
  %47 = phi i64 [ 0, %43 ], [ %232, %231 ]
  %48 = getelementptr inbounds nuw ptr, ptr %44, i64 %47
  %49 = load ptr, ptr %48, align 8
  br i1 %45, label %50, label %55

50:                                               ; preds = %46
  %51 = getelementptr inbounds nuw i8, ptr %49, i64 16
  br label %60

52:                                               ; preds = %60
  %53 = add nuw nsw i64 %61, 1
  %54 = icmp eq i64 %53, %9
  br i1 %54, label %55, label %60

55:                                               ; preds = %52, %46
  %56 = load i64, ptr %49, align 8
  %57 = icmp sgt i64 %56, 0
  br i1 %57, label %58, label %156

58:                                               ; preds = %55
  %59 = getelementptr inbounds nuw i8, ptr %49, i64 8
  br label %78

60:                                               ; preds = %52, %50
  %61 = phi i64 [ 0, %50 ], [ %53, %52 ]
  %62 = load ptr, ptr %51, align 8
  %63 = getelementptr inbounds nuw %struct.Argument, ptr %62, i64 %61
  %64 = load ptr, ptr %63, align 8
  %65 = getelementptr inbounds nuw ptr, ptr %39, i64 %61
  %66 = load ptr, ptr %65, align 8
  %67 = getelementptr inbounds nuw i8, ptr %63, i64 16
  %68 = load i64, ptr %67, align 8
  %69 = getelementptr inbounds i8, ptr %5, i64 %68
  %70 = getelementptr inbounds nuw i8, ptr %63, i64 8
  %71 = load ptr, ptr %70, align 8
  %72 = call i64 %64(ptr noundef %66, ptr noundef nonnull %69, ptr noundef %71)
  %73 = icmp eq i64 %72, 0
  br i1 %73, label %231, label %52

74:                                               ; preds = %148, %138, %130, %128, %119, %106, %102, %83
  %75 = add nuw nsw i64 %79, 1
  %76 = load i64, ptr %49, align 8
  %77 = icmp slt i64 %75, %76
  br i1 %77, label %78, label %156

78:                                               ; preds = %74, %58
  %79 = phi i64 [ 0, %58 ], [ %75, %74 ]
  %80 = load ptr, ptr %59, align 8
  %81 = getelementptr inbounds nuw %struct.Guard, ptr %80, i64 %79
  %82 = load i64, ptr %81, align 8
  switch i64 %82, label %231 [
    i64 0, label %148
    i64 1, label %83
    i64 2, label %92
    i64 3, label %106
    i64 4, label %114
    i64 5, label %123
    i64 6, label %130
    i64 7, label %138
  ]

83:                                               ; preds = %78
  %84 = getelementptr inbounds nuw i8, ptr %81, i64 8
  %85 = load ptr, ptr %84, align 8
  %86 = load i32, ptr %85, align 4
  %87 = getelementptr inbounds nuw i8, ptr %81, i64 24
  %88 = load ptr, ptr %87, align 8
  %89 = ptrtoint ptr %88 to i64
  %90 = trunc i64 %89 to i32
  %91 = icmp eq i32 %86, %90
  br i1 %91, label %74, label %231

92:                                               ; preds = %78
  %93 = getelementptr inbounds nuw i8, ptr %81, i64 8
  %94 = load ptr, ptr %93, align 8
  %95 = getelementptr inbounds nuw i8, ptr %81, i64 16
  %96 = load ptr, ptr %95, align 8
  %97 = call ptr @PyDict_GetItemWithError(ptr noundef %94, ptr noundef %96)
  %98 = icmp eq ptr %97, null
  br i1 %98, label %99, label %102

99:                                               ; preds = %92
  %100 = call ptr @PyErr_Occurred()
  %101 = icmp eq ptr %100, null
  br i1 %101, label %102, label %155

102:                                              ; preds = %99, %92
  %103 = getelementptr inbounds nuw i8, ptr %81, i64 24
  %104 = load ptr, ptr %103, align 8
  %105 = icmp eq ptr %97, %104
  br i1 %105, label %74, label %231

106:                                              ; preds = %78
  %107 = getelementptr inbounds nuw i8, ptr %81, i64 8
  %108 = load ptr, ptr %107, align 8
  %109 = call i64 @PyDict_Size(ptr noundef %108)
  %110 = getelementptr inbounds nuw i8, ptr %81, i64 24
  %111 = load ptr, ptr %110, align 8
  %112 = ptrtoint ptr %111 to i64
  %113 = icmp eq i64 %109, %112
  br i1 %113, label %74, label %231

114:                                              ; preds = %78
  %115 = getelementptr inbounds nuw i8, ptr %81, i64 8
  %116 = load ptr, ptr %115, align 8
  %117 = call ptr @PyObject_GenericGetDict(ptr noundef %116, ptr noundef null)
  %118 = icmp eq ptr %117, null
  br i1 %118, label %155, label %119

119:                                              ; preds = %114
  call void @Py_DecRef(ptr noundef nonnull %117)
  %120 = getelementptr inbounds nuw i8, ptr %81, i64 24
  %121 = load ptr, ptr %120, align 8
  %122 = icmp eq ptr %117, %121
  br i1 %122, label %74, label %231

123:                                              ; preds = %78
  %124 = getelementptr inbounds nuw i8, ptr %81, i64 8
  %125 = load ptr, ptr %124, align 8
  %126 = call ptr @PyObject_CallNoArgs(ptr noundef %125)
  %127 = icmp eq ptr %126, null
  br i1 %127, label %155, label %128

128:                                              ; preds = %123
  call void @Py_DecRef(ptr noundef nonnull %126)
  %129 = icmp eq ptr %126, @_Py_TrueStruct
  br i1 %129, label %74, label %231

130:                                              ; preds = %78
  %131 = getelementptr inbounds nuw i8, ptr %81, i64 8
  %132 = load ptr, ptr %131, align 8
  %133 = call i64 @PyList_Size(ptr noundef %132)
  %134 = getelementptr inbounds nuw i8, ptr %81, i64 24
  %135 = load ptr, ptr %134, align 8
  %136 = ptrtoint ptr %135 to i64
  %137 = icmp eq i64 %133, %136
  br i1 %137, label %74, label %231

138:                                              ; preds = %78
  %139 = getelementptr inbounds nuw i8, ptr %81, i64 8
  %140 = load ptr, ptr %139, align 8
  %141 = getelementptr inbounds nuw i8, ptr %81, i64 16
  %142 = load ptr, ptr %141, align 8
  %143 = ptrtoint ptr %142 to i64
  %144 = call ptr @PyList_GetItem(ptr noundef %140, i64 noundef %143)
  %145 = getelementptr inbounds nuw i8, ptr %81, i64 24
  %146 = load ptr, ptr %145, align 8
  %147 = icmp eq ptr %144, %146
  br i1 %147, label %74, label %231

148:                                              ; preds = %78
  %149 = getelementptr inbounds nuw i8, ptr %81, i64 8
  %150 = load ptr, ptr %149, align 8
  %151 = load ptr, ptr %150, align 8
  %152 = getelementptr inbounds nuw i8, ptr %81, i64 24
  %153 = load ptr, ptr %152, align 8
  %154 = icmp eq ptr %151, %153
  br i1 %154, label %74, label %231

155:                                              ; preds = %123, %114, %99
  call void @PyErr_Clear()
  br label %231

156:                                              ; preds = %55, %74
  %157 = getelementptr inbounds nuw i8, ptr %49, i64 104
  %158 = load i64, ptr %157, align 8
  %159 = icmp eq i64 %158, 0
  br i1 %159, label %164, label %160

160:                                              ; preds = %156
  %161 = call ptr @PyEval_SaveThread()
  %162 = getelementptr inbounds nuw i8, ptr %49, i64 24
  %163 = load ptr, ptr %162, align 8
  call void %163(ptr noundef nonnull %5)
  call void @PyEval_RestoreThread(ptr noundef %161)
  br label %167

164:                                              ; preds = %156
  %165 = getelementptr inbounds nuw i8, ptr %49, i64 24
  %166 = load ptr, ptr %165, align 8
  call void %166(ptr noundef nonnull %5)
  br label %167

167:                                              ; preds = %164, %160
  %168 = getelementptr inbounds nuw i8, ptr %49, i64 80
  %169 = load ptr, ptr %168, align 8
  %170 = load i64, ptr %169, align 8
  %171 = icmp eq i64 %170, 0
  br i1 %171, label %175, label %172

172:                                              ; preds = %167
  %173 = getelementptr inbounds nuw i8, ptr %49, i64 88
  %174 = load ptr, ptr %173, align 8
  br label %175

175:                                              ; preds = %172, %167
  %176 = phi ptr [ %174, %172 ], [ null, %167 ]
  %177 = getelementptr inbounds nuw i8, ptr %49, i64 96
  br label %178

178:                                              ; preds = %186, %175
  %179 = phi i1 [ true, %175 ], [ false, %186 ]
  %180 = phi ptr [ %176, %175 ], [ %187, %186 ]
  %181 = icmp eq ptr %180, null
  br i1 %181, label %186, label %182

182:                                              ; preds = %178
  %183 = call ptr @PyObject_CallNoArgs(ptr noundef nonnull %180)
  %184 = icmp eq ptr %183, null
  br i1 %184, label %239, label %185

185:                                              ; preds = %182
  call void @Py_DecRef(ptr noundef nonnull %183)
  br label %186

186:                                              ; preds = %185, %178
  %187 = load ptr, ptr %177, align 8
  br i1 %179, label %178, label %188

188:                                              ; preds = %186
  %189 = getelementptr inbounds nuw i8, ptr %49, i64 32
  %190 = load i64, ptr %189, align 8
  switch i64 %190, label %219 [
    i64 0, label %191
    i64 1, label %192
    i64 2, label %196
  ]

191:                                              ; preds = %188
  call void @Py_IncRef(ptr noundef nonnull @_Py_NoneStruct)
  br label %239

192:                                              ; preds = %188
  %193 = getelementptr inbounds nuw i8, ptr %49, i64 48
  %194 = load ptr, ptr %193, align 8
  %195 = call fastcc ptr @wrap(ptr noundef %194, ptr noundef nonnull %5)
  br label %239

196:                                              ; preds = %188
  %197 = getelementptr inbounds nuw i8, ptr %49, i64 40
  %198 = load i64, ptr %197, align 8
  %199 = call ptr @PyTuple_New(i64 noundef %198)
  %200 = icmp eq ptr %199, null
  br i1 %200, label %239, label %201

201:                                              ; preds = %196
  %202 = getelementptr inbounds nuw i8, ptr %49, i64 48
  %203 = load i64, ptr %197, align 8
  %204 = icmp sgt i64 %203, 0
  br i1 %204, label %209, label %239

205:                                              ; preds = %215
  %206 = add nuw nsw i64 %210, 1
  %207 = load i64, ptr %197, align 8
  %208 = icmp slt i64 %206, %207
  br i1 %208, label %209, label %239

209:                                              ; preds = %201, %205
  %210 = phi i64 [ %206, %205 ], [ 0, %201 ]
  %211 = load ptr, ptr %202, align 8
  %212 = getelementptr inbounds nuw %struct.Result, ptr %211, i64 %210
  %213 = call fastcc ptr @wrap(ptr noundef %212, ptr noundef nonnull %5)
  %214 = icmp eq ptr %213, null
  br i1 %214, label %218, label %215

215:                                              ; preds = %209
  %216 = call i32 @PyTuple_SetItem(ptr noundef nonnull %199, i64 noundef %210, ptr noundef nonnull %213)
  %217 = icmp eq i32 %216, 0
  br i1 %217, label %205, label %218

218:                                              ; preds = %215, %209
  call void @Py_DecRef(ptr noundef nonnull %199)
  br label %239

219:                                              ; preds = %188
  %220 = getelementptr inbounds nuw i8, ptr %49, i64 56
  %221 = load i64, ptr %220, align 8
  %222 = getelementptr inbounds i8, ptr %5, i64 %221
  %223 = getelementptr inbounds nuw i8, ptr %49, i64 64
  %224 = load i64, ptr %223, align 8
  %225 = call ptr @PyBytes_FromStringAndSize(ptr noundef nonnull %222, i64 noundef %224)
  %226 = icmp eq ptr %225, null
  br i1 %226, label %239, label %227

227:                                              ; preds = %219
  %228 = getelementptr inbounds nuw i8, ptr %49, i64 72
  %229 = load ptr, ptr %228, align 8
  %230 = call ptr @PyObject_CallOneArg(ptr noundef %229, ptr noundef nonnull %225)
  call void @Py_DecRef(ptr noundef nonnull %225)
  br label %239

231:                                              ; preds = %60, %78, %102, %130, %128, %119, %106, %138, %83, %148, %155
  %232 = add nuw nsw i64 %47, 1
  %233 = load i64, ptr %40, align 8
  %234 = icmp slt i64 %232, %233
  br i1 %234, label %46, label %235

235:                                              ; preds = %32, %231, %38, %4, %11
  %236 = getelementptr inbounds nuw i8, ptr %8, i64 24
  %237 = load ptr, ptr %236, align 8
  %238 = call ptr @PyObject_Vectorcall(ptr noundef %237, ptr noundef %1, i64 noundef %2, ptr noundef %3)
  br label %239

239:                                              ; preds = %182, %205, %227, %219, %218, %201, %196, %192, %191, %235
  %240 = phi ptr [ %238, %235 ], [ %199, %205 ], [ %199, %201 ], [ null, %196 ], [ null, %218 ], [ %230, %227 ], [ %195, %192 ], [ @_Py_NoneStruct, %191 ], [ null, %219 ], [ null, %182 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  ret ptr %240
}

declare ptr @PyLong_AsVoidPtr(ptr noundef)

declare ptr @PyObject_Vectorcall(ptr noundef, ptr noundef, i64 noundef, ptr noundef)

declare ptr @PyDict_GetItemWithError(ptr noundef, ptr noundef)

declare i64 @PyDict_Size(ptr noundef)

declare ptr @PyObject_GenericGetDict(ptr noundef, ptr noundef)

declare ptr @PyObject_CallNoArgs(ptr noundef)

declare i64 @PyList_Size(ptr noundef)

declare ptr @PyList_GetItem(ptr noundef, i64 noundef)

declare ptr @PyEval_SaveThread()

declare void @PyEval_RestoreThread(ptr noundef)

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
