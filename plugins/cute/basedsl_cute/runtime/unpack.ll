; made of unpack.c e5af63d03d5a99191c8f9b0095a110163fcae489b93ddc671c8219424bec5f95
%struct.Object = type { i64, ptr }
%struct.Tensor = type { ptr, i64, i32, i32, ptr, ptr, i64 }
%struct.Leaf = type { i64, i64 }

@PyBytes_Type = external global %struct.Object, align 8
@_Py_FalseStruct = external global %struct.Object, align 8

define range(i64 0, 2) i64 @basedsl_cute_unpack_tensor(ptr noundef %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = alloca [32 x i64], align 16
  %5 = alloca %struct.Tensor, align 8
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr inbounds nuw i8, ptr %2, i64 24
  %9 = load ptr, ptr %8, align 8
  %10 = icmp eq ptr %7, %9
  br i1 %10, label %11, label %70

11:                                               ; preds = %3
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  %12 = getelementptr inbounds nuw i8, ptr %5, i64 32
  store ptr null, ptr %12, align 8
  %13 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %14 = load ptr, ptr %13, align 8
  %15 = call i32 %14(ptr noundef nonnull %0, ptr noundef nonnull %5)
  %16 = icmp eq i32 %15, 0
  br i1 %16, label %18, label %17

17:                                               ; preds = %11
  call void @PyErr_Clear()
  br label %68

18:                                               ; preds = %11
  %19 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %20 = load i64, ptr %19, align 8
  %21 = getelementptr inbounds nuw i8, ptr %2, i64 56
  %22 = load i64, ptr %21, align 8
  %23 = and i64 %22, %20
  %24 = getelementptr inbounds nuw i8, ptr %2, i64 48
  %25 = load i64, ptr %24, align 8
  %26 = icmp eq i64 %23, %25
  br i1 %26, label %27, label %68

27:                                               ; preds = %18
  %28 = getelementptr inbounds nuw i8, ptr %5, i64 20
  %29 = load i32, ptr %28, align 4
  %30 = zext i32 %29 to i64
  %31 = getelementptr inbounds nuw i8, ptr %2, i64 64
  %32 = load i64, ptr %31, align 8
  %33 = icmp eq i64 %32, %30
  br i1 %33, label %34, label %68

34:                                               ; preds = %27
  %35 = getelementptr inbounds nuw i8, ptr %5, i64 16
  %36 = load i32, ptr %35, align 8
  %37 = sext i32 %36 to i64
  %38 = getelementptr inbounds nuw i8, ptr %2, i64 80
  %39 = load i64, ptr %38, align 8
  %40 = icmp eq i64 %39, %37
  br i1 %40, label %41, label %68

41:                                               ; preds = %34
  %42 = icmp eq i32 %36, 0
  %43 = load ptr, ptr %12, align 8
  %44 = icmp ne ptr %43, null
  %45 = select i1 %42, i1 true, i1 %44
  br i1 %45, label %46, label %68

46:                                               ; preds = %41
  %47 = getelementptr inbounds nuw i8, ptr %2, i64 104
  %48 = load i64, ptr %47, align 8
  %49 = and i64 %48, 2
  %50 = icmp eq i64 %49, 0
  br i1 %50, label %68, label %51

51:                                               ; preds = %46
  %52 = getelementptr inbounds nuw i8, ptr %2, i64 40
  %53 = load ptr, ptr %52, align 8
  %54 = call ptr @PyObject_GetAttr(ptr noundef nonnull %0, ptr noundef %53)
  %55 = icmp eq ptr %54, null
  br i1 %55, label %56, label %57

56:                                               ; preds = %51
  call void @PyErr_Clear()
  br label %68

57:                                               ; preds = %51
  call void @Py_DecRef(ptr noundef nonnull %54)
  %58 = icmp eq ptr %54, @_Py_FalseStruct
  br i1 %58, label %59, label %68

59:                                               ; preds = %57
  %60 = load ptr, ptr %5, align 8
  %61 = getelementptr inbounds nuw i8, ptr %5, i64 40
  %62 = load i64, ptr %61, align 8
  %63 = getelementptr inbounds nuw i8, ptr %60, i64 %62
  %64 = getelementptr inbounds nuw i8, ptr %5, i64 24
  %65 = load ptr, ptr %64, align 8
  %66 = load ptr, ptr %12, align 8
  %67 = call fastcc i64 @store(ptr noundef nonnull readonly %2, ptr noundef %63, ptr noundef %65, ptr noundef %66, ptr noundef %1)
  br label %68

68:                                               ; preds = %17, %18, %27, %34, %41, %46, %56, %57, %59
  %69 = phi i64 [ 0, %17 ], [ 0, %27 ], [ 0, %18 ], [ 0, %46 ], [ 0, %41 ], [ 0, %34 ], [ 0, %56 ], [ %67, %59 ], [ 0, %57 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %160

70:                                               ; preds = %3
  %71 = load ptr, ptr %2, align 8
  %72 = icmp eq ptr %7, %71
  br i1 %72, label %73, label %122

73:                                               ; preds = %70
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  %74 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %75 = load ptr, ptr %74, align 8
  %76 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %77 = load ptr, ptr %76, align 8
  %78 = icmp eq ptr %75, %77
  br i1 %78, label %79, label %120

79:                                               ; preds = %73
  %80 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %81 = load i32, ptr %80, align 8
  %82 = sext i32 %81 to i64
  %83 = getelementptr inbounds nuw i8, ptr %2, i64 80
  %84 = load i64, ptr %83, align 8
  %85 = icmp eq i64 %84, %82
  br i1 %85, label %86, label %120

86:                                               ; preds = %79
  %87 = getelementptr inbounds nuw i8, ptr %2, i64 104
  %88 = load i64, ptr %87, align 8
  %89 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %90 = load i32, ptr %89, align 8
  %91 = and i32 %90, 1024
  %92 = icmp eq i32 %91, 0
  %93 = select i1 %92, i64 1, i64 2
  %94 = and i64 %93, %88
  %95 = icmp eq i64 %94, 0
  br i1 %95, label %120, label %96

96:                                               ; preds = %86
  %97 = icmp sgt i32 %81, 0
  br i1 %97, label %98, label %114

98:                                               ; preds = %96
  %99 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %100 = load ptr, ptr %99, align 8
  %101 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %102 = load i64, ptr %101, align 8
  br label %103

103:                                              ; preds = %110, %98
  %104 = phi i64 [ 0, %98 ], [ %112, %110 ]
  %105 = getelementptr inbounds nuw i64, ptr %100, i64 %104
  %106 = load i64, ptr %105, align 8
  %107 = srem i64 %106, %102
  %108 = sdiv i64 %106, %102
  %109 = icmp eq i64 %107, 0
  br i1 %109, label %110, label %120

110:                                              ; preds = %103
  %111 = getelementptr inbounds nuw i64, ptr %4, i64 %104
  store i64 %108, ptr %111, align 8
  %112 = add nuw nsw i64 %104, 1
  %113 = icmp eq i64 %112, %82
  br i1 %113, label %114, label %103

114:                                              ; preds = %110, %96
  %115 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %116 = load ptr, ptr %115, align 8
  %117 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %118 = load ptr, ptr %117, align 8
  %119 = call fastcc i64 @store(ptr noundef nonnull readonly %2, ptr noundef %116, ptr noundef %118, ptr noundef nonnull %4, ptr noundef %1)
  br label %120

120:                                              ; preds = %103, %73, %79, %86, %114
  %121 = phi i64 [ 0, %73 ], [ %119, %114 ], [ 0, %86 ], [ 0, %79 ], [ 0, %103 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  br label %160

122:                                              ; preds = %70
  %123 = getelementptr inbounds nuw i8, ptr %2, i64 72
  %124 = load ptr, ptr %123, align 8
  %125 = tail call ptr @PyObject_CallOneArg(ptr noundef %124, ptr noundef nonnull %0)
  %126 = icmp eq ptr %125, null
  br i1 %126, label %135, label %127

127:                                              ; preds = %122
  %128 = getelementptr inbounds nuw i8, ptr %2, i64 80
  %129 = load i64, ptr %128, align 8
  %130 = icmp sgt i64 %129, 0
  br i1 %130, label %131, label %138

131:                                              ; preds = %127
  %132 = shl nuw i64 %129, 1
  %133 = getelementptr inbounds nuw i8, ptr %2, i64 144
  %134 = tail call i64 @llvm.smax.i64(i64 %132, i64 1)
  br label %143

135:                                              ; preds = %122
  tail call void @PyErr_Clear()
  br label %160

136:                                              ; preds = %143
  %137 = shl nsw i64 %150, 3
  br label %138

138:                                              ; preds = %136, %127
  %139 = phi i64 [ 8, %127 ], [ %137, %136 ]
  %140 = getelementptr inbounds nuw i8, ptr %125, i64 8
  %141 = load ptr, ptr %140, align 8
  %142 = icmp eq ptr %141, @PyBytes_Type
  br i1 %142, label %153, label %158

143:                                              ; preds = %131, %143
  %144 = phi i64 [ 0, %131 ], [ %151, %143 ]
  %145 = phi i64 [ 1, %131 ], [ %150, %143 ]
  %146 = getelementptr inbounds nuw %struct.Leaf, ptr %133, i64 %144
  %147 = load i64, ptr %146, align 8
  %148 = icmp eq i64 %147, 0
  %149 = zext i1 %148 to i64
  %150 = add nuw nsw i64 %145, %149
  %151 = add nuw nsw i64 %144, 1
  %152 = icmp eq i64 %151, %134
  br i1 %152, label %136, label %143

153:                                              ; preds = %138
  %154 = tail call i64 @PyBytes_Size(ptr noundef nonnull %125)
  %155 = icmp eq i64 %154, %139
  br i1 %155, label %156, label %158

156:                                              ; preds = %153
  %157 = tail call ptr @PyBytes_AsString(ptr noundef nonnull %125)
  tail call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 1 dereferenceable(1) %1, ptr noundef nonnull align 1 dereferenceable(1) %157, i64 %154, i1 false)
  br label %158

158:                                              ; preds = %138, %156, %153
  %159 = phi i64 [ 0, %153 ], [ 1, %156 ], [ 0, %138 ]
  tail call void @Py_DecRef(ptr noundef nonnull %125)
  br label %160

160:                                              ; preds = %135, %158, %120, %68
  %161 = phi i64 [ %69, %68 ], [ %121, %120 ], [ %159, %158 ], [ 0, %135 ]
  ret i64 %161
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare ptr @PyObject_CallOneArg(ptr noundef, ptr noundef)

declare void @PyErr_Clear()

declare void @llvm.lifetime.end.p0(ptr captures(none))

declare i64 @PyBytes_Size(ptr noundef)

declare ptr @PyBytes_AsString(ptr noundef)

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

declare void @Py_DecRef(ptr noundef)

declare ptr @PyObject_GetAttr(ptr noundef, ptr noundef)

define internal fastcc range(i64 0, 2) i64 @store(ptr noundef readonly captures(none) %0, ptr noundef %1, ptr noundef readonly captures(none) %2, ptr noundef readonly captures(none) %3, ptr noundef writeonly captures(none) %4) unnamed_addr {
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 80
  %7 = load i64, ptr %6, align 8
  %8 = ptrtoint ptr %1 to i64
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 88
  %10 = load i64, ptr %9, align 8
  %11 = and i64 %10, %8
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 96
  %13 = load i64, ptr %12, align 8
  %14 = icmp eq i64 %11, %13
  br i1 %14, label %15, label %146

15:                                               ; preds = %5
  %16 = icmp sgt i64 %7, 0
  br i1 %16, label %17, label %47

17:                                               ; preds = %15, %37
  %18 = phi i64 [ %38, %37 ], [ 0, %15 ]
  %19 = phi i64 [ %39, %37 ], [ 0, %15 ]
  %20 = getelementptr inbounds nuw i64, ptr %2, i64 %19
  %21 = load i64, ptr %20, align 8
  %22 = icmp sgt i64 %21, 2147483647
  br i1 %22, label %41, label %23

23:                                               ; preds = %17
  %24 = icmp eq i64 %21, 0
  br i1 %24, label %37, label %25

25:                                               ; preds = %23
  %26 = getelementptr inbounds nuw i64, ptr %3, i64 %19
  %27 = load i64, ptr %26, align 8
  %28 = tail call i64 @llvm.abs.i64(i64 %27, i1 true)
  %29 = add nsw i64 %21, -1
  %30 = tail call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %29, i64 %28)
  %31 = extractvalue { i64, i1 } %30, 1
  br i1 %31, label %41, label %32

32:                                               ; preds = %25
  %33 = extractvalue { i64, i1 } %30, 0
  %34 = tail call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %18, i64 %33)
  %35 = extractvalue { i64, i1 } %34, 1
  %36 = extractvalue { i64, i1 } %34, 0
  br i1 %35, label %41, label %37

37:                                               ; preds = %32, %23
  %38 = phi i64 [ %36, %32 ], [ %18, %23 ]
  %39 = add nuw nsw i64 %19, 1
  %40 = icmp eq i64 %39, %7
  br i1 %40, label %41, label %17

41:                                               ; preds = %37, %32, %25, %17
  %42 = phi i1 [ true, %32 ], [ false, %37 ], [ true, %17 ], [ true, %25 ]
  %43 = phi i64 [ %36, %32 ], [ %38, %37 ], [ %18, %17 ], [ %18, %25 ]
  %44 = icmp sgt i64 %43, 2147483647
  %45 = select i1 %42, i1 true, i1 %44
  %46 = select i1 %45, i64 2, i64 1
  br label %47

47:                                               ; preds = %15, %41
  %48 = phi i64 [ 1, %15 ], [ %46, %41 ]
  %49 = getelementptr inbounds nuw i8, ptr %0, i64 112
  %50 = load i64, ptr %49, align 8
  %51 = and i64 %50, %48
  %52 = icmp eq i64 %51, 0
  br i1 %52, label %146, label %53

53:                                               ; preds = %47
  %54 = getelementptr inbounds nuw i8, ptr %0, i64 128
  %55 = load i64, ptr %54, align 8
  %56 = icmp eq i64 %55, 0
  br i1 %56, label %96, label %57

57:                                               ; preds = %53
  br i1 %16, label %66, label %91

58:                                               ; preds = %84
  %59 = icmp slt i64 %85, 2
  %60 = icmp eq i64 %87, 0
  %61 = select i1 %59, i1 true, i1 %60
  %62 = icmp eq i64 %87, 1
  %63 = freeze i1 %61
  %64 = select i1 %62, i64 %88, i64 -1
  %65 = select i1 %63, i64 %86, i64 %64
  br label %91

66:                                               ; preds = %57, %84
  %67 = phi i64 [ %89, %84 ], [ 0, %57 ]
  %68 = phi i64 [ %88, %84 ], [ -1, %57 ]
  %69 = phi i64 [ %87, %84 ], [ 0, %57 ]
  %70 = phi i64 [ %86, %84 ], [ -1, %57 ]
  %71 = phi i64 [ %85, %84 ], [ 0, %57 ]
  %72 = getelementptr inbounds nuw i64, ptr %3, i64 %67
  %73 = load i64, ptr %72, align 8
  %74 = icmp eq i64 %73, 1
  br i1 %74, label %75, label %84

75:                                               ; preds = %66
  %76 = add nsw i64 %71, 1
  %77 = getelementptr inbounds nuw i64, ptr %2, i64 %67
  %78 = load i64, ptr %77, align 8
  %79 = icmp sgt i64 %78, 1
  %80 = zext i1 %79 to i64
  %81 = add nsw i64 %69, %80
  %82 = select i1 %79, i64 %67, i64 %68
  %83 = freeze i64 %81
  br label %84

84:                                               ; preds = %75, %66
  %85 = phi i64 [ %71, %66 ], [ %76, %75 ]
  %86 = phi i64 [ %70, %66 ], [ %67, %75 ]
  %87 = phi i64 [ %69, %66 ], [ %83, %75 ]
  %88 = phi i64 [ %68, %66 ], [ %82, %75 ]
  %89 = add nuw nsw i64 %67, 1
  %90 = icmp eq i64 %89, %7
  br i1 %90, label %58, label %66

91:                                               ; preds = %57, %58
  %92 = phi i64 [ %65, %58 ], [ -1, %57 ]
  %93 = getelementptr inbounds nuw i8, ptr %0, i64 136
  %94 = load i64, ptr %93, align 8
  %95 = icmp eq i64 %92, %94
  br i1 %95, label %96, label %146

96:                                               ; preds = %91, %53
  store ptr %1, ptr %4, align 8
  %97 = icmp slt i64 %7, 1
  br i1 %97, label %146, label %98

98:                                               ; preds = %96
  %99 = shl nuw i64 %7, 1
  %100 = getelementptr inbounds nuw i8, ptr %0, i64 144
  %101 = getelementptr inbounds nuw i8, ptr %0, i64 120
  %102 = tail call i64 @llvm.smax.i64(i64 %99, i64 1)
  br label %103

103:                                              ; preds = %98, %142
  %104 = phi ptr [ %4, %98 ], [ %143, %142 ]
  %105 = phi i64 [ 0, %98 ], [ %144, %142 ]
  %106 = getelementptr inbounds nuw %struct.Leaf, ptr %100, i64 %105
  %107 = icmp slt i64 %105, %7
  %108 = getelementptr inbounds nuw i64, ptr %2, i64 %105
  %109 = sub nsw i64 %105, %7
  %110 = getelementptr inbounds nuw i64, ptr %3, i64 %109
  %111 = select i1 %107, ptr %108, ptr %110
  %112 = load i64, ptr %111, align 8
  br i1 %107, label %117, label %113

113:                                              ; preds = %103
  %114 = getelementptr inbounds nuw i64, ptr %2, i64 %109
  %115 = load i64, ptr %114, align 8
  %116 = icmp sgt i64 %115, 1
  br label %117

117:                                              ; preds = %113, %103
  %118 = phi i1 [ true, %103 ], [ %116, %113 ]
  %119 = load i64, ptr %106, align 8
  %120 = icmp eq i64 %119, 0
  %121 = getelementptr inbounds nuw i8, ptr %106, i64 8
  %122 = load i64, ptr %121, align 8
  br i1 %120, label %126, label %123

123:                                              ; preds = %117
  %124 = icmp ne i64 %112, %122
  %125 = select i1 %124, i1 %118, i1 false
  br i1 %125, label %146, label %142

126:                                              ; preds = %117
  %127 = icmp ne i64 %122, 1
  %128 = select i1 %127, i1 %118, i1 false
  br i1 %128, label %129, label %132

129:                                              ; preds = %126
  %130 = srem i64 %112, %122
  %131 = icmp eq i64 %130, 0
  br i1 %131, label %132, label %146

132:                                              ; preds = %129, %126
  %133 = getelementptr inbounds nuw i8, ptr %104, i64 8
  %134 = load i64, ptr %101, align 8
  %135 = icmp eq i64 %134, 8
  br i1 %135, label %136, label %137

136:                                              ; preds = %132
  store i64 %112, ptr %133, align 8
  br label %142

137:                                              ; preds = %132
  %138 = add i64 %112, 2147483648
  %139 = icmp ult i64 %138, 4294967296
  br i1 %139, label %140, label %146

140:                                              ; preds = %137
  %141 = trunc nsw i64 %112 to i32
  store i32 %141, ptr %133, align 4
  br label %142

142:                                              ; preds = %140, %136, %123
  %143 = phi ptr [ %104, %123 ], [ %133, %140 ], [ %133, %136 ]
  %144 = add nuw nsw i64 %105, 1
  %145 = icmp eq i64 %144, %102
  br i1 %145, label %146, label %103

146:                                              ; preds = %123, %137, %129, %142, %96, %91, %47, %5
  %147 = phi i64 [ 0, %5 ], [ 0, %47 ], [ 0, %91 ], [ 1, %96 ], [ 0, %123 ], [ 0, %137 ], [ 0, %129 ], [ 1, %142 ]
  ret i64 %147
}

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)

declare i64 @llvm.abs.i64(i64, i1 immarg)

declare i64 @llvm.smax.i64(i64, i64)
