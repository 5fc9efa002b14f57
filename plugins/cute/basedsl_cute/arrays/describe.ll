; made of describe.c 915d04a5d798b2df750336e36b22742de811f38c222723d0ceb54d256de91fe2
%struct.Object = type { i64, ptr }
%struct.Tensor = type { ptr, i64, i32, i32, ptr, ptr, i64 }

@PyTuple_Type = external global %struct.Object, align 8
@_Py_NoneStruct = external global %struct.Object, align 8
@_Py_FalseStruct = external global %struct.Object, align 8

define ptr @basedsl_cute_describe(ptr noundef %0, ptr noundef readonly captures(none) %1, i64 noundef %2, ptr noundef readnone captures(address_is_null) %3) {
  %5 = alloca ptr, align 8
  %6 = alloca %struct.Tensor, align 8
  %7 = alloca [512 x i64], align 16
  %8 = tail call ptr @PyBytes_AsString(ptr noundef %0)
  %9 = load ptr, ptr %8, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %7)
  %10 = icmp ne i64 %2, 1
  %11 = icmp ne ptr %3, null
  %12 = or i1 %10, %11
  br i1 %12, label %18, label %13

13:                                               ; preds = %4
  %14 = load ptr, ptr %1, align 8
  %15 = getelementptr inbounds nuw i8, ptr %14, i64 8
  %16 = load ptr, ptr %15, align 8
  %17 = icmp eq ptr %16, @PyTuple_Type
  br i1 %17, label %19, label %18

18:                                               ; preds = %13, %4
  tail call void @PyErr_Clear()
  tail call void @Py_IncRef(ptr noundef nonnull @_Py_NoneStruct)
  br label %170

19:                                               ; preds = %13
  %20 = tail call ptr @PyList_New(i64 noundef 0)
  %21 = icmp eq ptr %20, null
  br i1 %21, label %22, label %23

22:                                               ; preds = %19
  tail call void @PyErr_Clear()
  tail call void @Py_IncRef(ptr noundef nonnull @_Py_NoneStruct)
  br label %170

23:                                               ; preds = %19
  %24 = load ptr, ptr %1, align 8
  %25 = tail call i64 @PyTuple_Size(ptr noundef %24)
  %26 = icmp sgt i64 %25, 0
  br i1 %26, label %27, label %158

27:                                               ; preds = %23
  %28 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %29 = getelementptr inbounds nuw i8, ptr %6, i64 32
  %30 = getelementptr inbounds nuw i8, ptr %9, i64 16
  %31 = getelementptr inbounds nuw i8, ptr %6, i64 16
  %32 = getelementptr inbounds nuw i8, ptr %9, i64 24
  %33 = getelementptr inbounds nuw i8, ptr %9, i64 40
  %34 = getelementptr inbounds nuw i8, ptr %9, i64 32
  %35 = getelementptr inbounds nuw i8, ptr %6, i64 40
  %36 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %37 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %38 = getelementptr inbounds nuw i8, ptr %6, i64 20
  %39 = getelementptr inbounds nuw i8, ptr %9, i64 48
  br label %40

40:                                               ; preds = %27, %151
  %41 = phi i64 [ 0, %27 ], [ %153, %151 ]
  %42 = phi i64 [ 0, %27 ], [ %154, %151 ]
  %43 = load ptr, ptr %1, align 8
  %44 = call ptr @PyTuple_GetItem(ptr noundef %43, i64 noundef %42)
  %45 = icmp sgt i64 %41, 493
  br i1 %45, label %46, label %47

46:                                               ; preds = %40
  call void @PyErr_Clear()
  call void @Py_DecRef(ptr noundef nonnull %20)
  call void @Py_IncRef(ptr noundef nonnull @_Py_NoneStruct)
  br label %170

47:                                               ; preds = %40
  %48 = icmp eq ptr %44, @_Py_NoneStruct
  %49 = getelementptr inbounds i64, ptr %7, i64 %41
  br i1 %48, label %50, label %51

50:                                               ; preds = %47
  store i64 -1, ptr %49, align 8
  br label %151

51:                                               ; preds = %47
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  store ptr %44, ptr %5, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  %52 = getelementptr inbounds nuw i8, ptr %44, i64 8
  %53 = load ptr, ptr %52, align 8
  %54 = load ptr, ptr %9, align 8
  %55 = icmp eq ptr %53, %54
  br i1 %55, label %59, label %56

56:                                               ; preds = %51
  %57 = load ptr, ptr %28, align 8
  %58 = icmp eq ptr %53, %57
  br i1 %58, label %59, label %141

59:                                               ; preds = %56, %51
  store ptr null, ptr %29, align 8
  %60 = load ptr, ptr %30, align 8
  %61 = call i32 %60(ptr noundef nonnull %44, ptr noundef nonnull %6)
  %62 = icmp eq i32 %61, 0
  br i1 %62, label %63, label %140

63:                                               ; preds = %59
  %64 = load i32, ptr %31, align 8
  %65 = sext i32 %64 to i64
  %66 = icmp sgt i32 %64, 8
  br i1 %66, label %141, label %67

67:                                               ; preds = %63
  %68 = icmp eq i32 %64, 0
  %69 = load ptr, ptr %29, align 8
  %70 = icmp ne ptr %69, null
  %71 = select i1 %68, i1 true, i1 %70
  br i1 %71, label %72, label %141

72:                                               ; preds = %67
  %73 = load ptr, ptr %32, align 8
  %74 = call ptr @PyObject_GetAttr(ptr noundef nonnull %44, ptr noundef %73)
  %75 = icmp eq ptr %74, null
  br i1 %75, label %76, label %77

76:                                               ; preds = %72
  call void @PyErr_Clear()
  br label %79

77:                                               ; preds = %72
  call void @Py_DecRef(ptr noundef nonnull %74)
  %78 = icmp eq ptr %74, @_Py_FalseStruct
  br i1 %78, label %85, label %79

79:                                               ; preds = %77, %76
  %80 = load ptr, ptr %33, align 8
  %81 = call ptr @PyObject_CallNoArgs(ptr noundef %80)
  %82 = icmp eq ptr %81, null
  br i1 %82, label %140, label %83

83:                                               ; preds = %79
  call void @Py_DecRef(ptr noundef nonnull %81)
  %84 = icmp eq ptr %81, @_Py_FalseStruct
  br i1 %84, label %85, label %141

85:                                               ; preds = %83, %77
  %86 = load ptr, ptr %34, align 8
  %87 = call ptr @PyObject_VectorcallMethod(ptr noundef %86, ptr noundef nonnull %5, i64 noundef 1, ptr noundef null)
  %88 = icmp eq ptr %87, null
  br i1 %88, label %140, label %89

89:                                               ; preds = %85
  call void @Py_DecRef(ptr noundef nonnull %87)
  %90 = icmp eq ptr %87, @_Py_FalseStruct
  br i1 %90, label %91, label %141

91:                                               ; preds = %89
  %92 = load ptr, ptr %6, align 8
  %93 = ptrtoint ptr %92 to i64
  %94 = load i64, ptr %35, align 8
  %95 = add i64 %94, %93
  %96 = icmp sgt i32 %64, 0
  br i1 %96, label %97, label %101

97:                                               ; preds = %91
  %98 = load ptr, ptr %36, align 8
  br label %105

99:                                               ; preds = %105
  %100 = icmp ne i64 %111, 0
  br label %101

101:                                              ; preds = %99, %91
  %102 = phi i1 [ true, %91 ], [ %100, %99 ]
  %103 = icmp eq i64 %95, 0
  %104 = select i1 %103, i1 %102, i1 false
  br i1 %104, label %141, label %114

105:                                              ; preds = %105, %97
  %106 = phi i64 [ 0, %97 ], [ %112, %105 ]
  %107 = phi i64 [ 1, %97 ], [ %111, %105 ]
  %108 = getelementptr inbounds nuw i64, ptr %98, i64 %106
  %109 = load i64, ptr %108, align 8
  %110 = icmp eq i64 %109, 0
  %111 = select i1 %110, i64 0, i64 %107
  %112 = add nuw nsw i64 %106, 1
  %113 = icmp eq i64 %112, %65
  br i1 %113, label %99, label %105

114:                                              ; preds = %101
  %115 = load i64, ptr %37, align 8
  store i64 %115, ptr %49, align 8
  %116 = load i32, ptr %38, align 4
  %117 = zext i32 %116 to i64
  %118 = shl nsw i64 %65, 32
  %119 = or disjoint i64 %118, %117
  %120 = getelementptr inbounds nuw i8, ptr %49, i64 8
  store i64 %119, ptr %120, align 8
  %121 = load i64, ptr %39, align 8
  %122 = and i64 %121, %95
  %123 = getelementptr inbounds nuw i8, ptr %49, i64 16
  store i64 %122, ptr %123, align 8
  br i1 %96, label %124, label %142

124:                                              ; preds = %114
  %125 = load ptr, ptr %36, align 8
  %126 = load ptr, ptr %29, align 8
  %127 = getelementptr i64, ptr %49, i64 %65
  %128 = getelementptr i8, ptr %127, i64 24
  br label %129

129:                                              ; preds = %129, %124
  %130 = phi i64 [ 0, %124 ], [ %138, %129 ]
  %131 = getelementptr inbounds nuw i64, ptr %125, i64 %130
  %132 = load i64, ptr %131, align 8
  %133 = getelementptr inbounds nuw i64, ptr %49, i64 %130
  %134 = getelementptr inbounds nuw i8, ptr %133, i64 24
  store i64 %132, ptr %134, align 8
  %135 = getelementptr inbounds nuw i64, ptr %126, i64 %130
  %136 = load i64, ptr %135, align 8
  %137 = getelementptr i64, ptr %128, i64 %130
  store i64 %136, ptr %137, align 8
  %138 = add nuw nsw i64 %130, 1
  %139 = icmp eq i64 %138, %65
  br i1 %139, label %142, label %129

140:                                              ; preds = %85, %79, %59
  call void @PyErr_Clear()
  br label %141

141:                                              ; preds = %56, %63, %89, %83, %67, %101, %140
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %150

142:                                              ; preds = %129, %114
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  %143 = call ptr @PyLong_FromUnsignedLongLong(i64 noundef %95)
  %144 = icmp eq ptr %143, null
  br i1 %144, label %150, label %145

145:                                              ; preds = %142
  %146 = shl nsw i64 %65, 1
  %147 = add nsw i64 %146, 3
  %148 = call i32 @PyList_Append(ptr noundef nonnull %20, ptr noundef nonnull %143)
  call void @Py_DecRef(ptr noundef nonnull %143)
  %149 = icmp eq i32 %148, 0
  br i1 %149, label %151, label %150

150:                                              ; preds = %142, %145, %141
  call void @PyErr_Clear()
  call void @Py_DecRef(ptr noundef nonnull %20)
  call void @Py_IncRef(ptr noundef nonnull @_Py_NoneStruct)
  br label %170

151:                                              ; preds = %145, %50
  %152 = phi i64 [ 1, %50 ], [ %147, %145 ]
  %153 = add nsw i64 %152, %41
  %154 = add nuw nsw i64 %42, 1
  %155 = icmp eq i64 %154, %25
  br i1 %155, label %156, label %40

156:                                              ; preds = %151
  %157 = shl nsw i64 %153, 3
  br label %158

158:                                              ; preds = %156, %23
  %159 = phi i64 [ 0, %23 ], [ %157, %156 ]
  %160 = call ptr @PyBytes_FromStringAndSize(ptr noundef nonnull %7, i64 noundef %159)
  %161 = icmp eq ptr %160, null
  br i1 %161, label %166, label %162

162:                                              ; preds = %158
  %163 = call ptr @PyTuple_New(i64 noundef 2)
  %164 = icmp eq ptr %163, null
  br i1 %164, label %165, label %167

165:                                              ; preds = %162
  call void @Py_DecRef(ptr noundef nonnull %160)
  br label %166

166:                                              ; preds = %158, %165
  call void @PyErr_Clear()
  call void @Py_DecRef(ptr noundef nonnull %20)
  call void @Py_IncRef(ptr noundef nonnull @_Py_NoneStruct)
  br label %170

167:                                              ; preds = %162
  %168 = call i32 @PyTuple_SetItem(ptr noundef nonnull %163, i64 noundef 0, ptr noundef nonnull %160)
  %169 = call i32 @PyTuple_SetItem(ptr noundef nonnull %163, i64 noundef 1, ptr noundef nonnull %20)
  br label %170

170:                                              ; preds = %46, %150, %22, %166, %167, %18
  %171 = phi ptr [ @_Py_NoneStruct, %18 ], [ @_Py_NoneStruct, %22 ], [ @_Py_NoneStruct, %166 ], [ %163, %167 ], [ @_Py_NoneStruct, %150 ], [ @_Py_NoneStruct, %46 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %7)
  ret ptr %171
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare ptr @PyBytes_AsString(ptr noundef)

declare ptr @PyList_New(i64 noundef)

declare i64 @PyTuple_Size(ptr noundef)

declare ptr @PyTuple_GetItem(ptr noundef, i64 noundef)

declare void @llvm.lifetime.end.p0(ptr captures(none))

declare ptr @PyBytes_FromStringAndSize(ptr noundef, i64 noundef)

declare ptr @PyTuple_New(i64 noundef)

declare void @Py_DecRef(ptr noundef)

declare i32 @PyTuple_SetItem(ptr noundef, i64 noundef, ptr noundef)

declare void @PyErr_Clear()

declare void @Py_IncRef(ptr noundef)

declare ptr @PyObject_GetAttr(ptr noundef, ptr noundef)

declare ptr @PyObject_CallNoArgs(ptr noundef)

declare ptr @PyObject_VectorcallMethod(ptr noundef, ptr noundef, i64 noundef, ptr noundef)

declare ptr @PyLong_FromUnsignedLongLong(i64 noundef)

declare i32 @PyList_Append(ptr noundef, ptr noundef)
