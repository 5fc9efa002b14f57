; made of unpack.c dc3eecc11a4eb48993439e18e9cbd9408112ef5ffc231a47e954031f2fcc1bcb
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
  %133 = getelementptr inbounds nuw i8, ptr %2, i64 160
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
  br i1 %14, label %15, label %179

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
  br i1 %52, label %179, label %53

53:                                               ; preds = %47
  %54 = getelementptr inbounds nuw i8, ptr %0, i64 128
  %55 = load i64, ptr %54, align 8
  %56 = icmp eq i64 %55, 0
  br i1 %56, label %124, label %57

57:                                               ; preds = %53
  br i1 %16, label %58, label %94

58:                                               ; preds = %57, %76
  %59 = phi i64 [ %81, %76 ], [ 0, %57 ]
  %60 = phi i64 [ %80, %76 ], [ -1, %57 ]
  %61 = phi i64 [ %79, %76 ], [ 0, %57 ]
  %62 = phi i64 [ %78, %76 ], [ -1, %57 ]
  %63 = phi i64 [ %77, %76 ], [ 0, %57 ]
  %64 = getelementptr inbounds nuw i64, ptr %3, i64 %59
  %65 = load i64, ptr %64, align 8
  %66 = icmp eq i64 %65, 1
  br i1 %66, label %67, label %76

67:                                               ; preds = %58
  %68 = add nsw i64 %63, 1
  %69 = getelementptr inbounds nuw i64, ptr %2, i64 %59
  %70 = load i64, ptr %69, align 8
  %71 = icmp sgt i64 %70, 1
  %72 = zext i1 %71 to i64
  %73 = add nsw i64 %61, %72
  %74 = select i1 %71, i64 %59, i64 %60
  %75 = freeze i64 %73
  br label %76

76:                                               ; preds = %67, %58
  %77 = phi i64 [ %63, %58 ], [ %68, %67 ]
  %78 = phi i64 [ %62, %58 ], [ %59, %67 ]
  %79 = phi i64 [ %61, %58 ], [ %75, %67 ]
  %80 = phi i64 [ %60, %58 ], [ %74, %67 ]
  %81 = add nuw nsw i64 %59, 1
  %82 = icmp eq i64 %81, %7
  br i1 %82, label %83, label %58

83:                                               ; preds = %76
  %84 = icmp slt i64 %77, 2
  %85 = icmp eq i64 %79, 0
  %86 = select i1 %84, i1 true, i1 %85
  %87 = icmp eq i64 %79, 1
  %88 = freeze i1 %86
  %89 = select i1 %87, i64 %80, i64 -1
  %90 = select i1 %88, i64 %78, i64 %89
  %91 = getelementptr inbounds nuw i8, ptr %0, i64 136
  %92 = load i64, ptr %91, align 8
  %93 = icmp eq i64 %90, %92
  br i1 %93, label %98, label %179

94:                                               ; preds = %57
  %95 = getelementptr inbounds nuw i8, ptr %0, i64 136
  %96 = load i64, ptr %95, align 8
  %97 = icmp eq i64 %96, -1
  br i1 %97, label %114, label %179

98:                                               ; preds = %83, %110
  %99 = phi i64 [ %112, %110 ], [ 0, %83 ]
  %100 = phi i64 [ %111, %110 ], [ 0, %83 ]
  %101 = icmp eq i64 %99, %90
  br i1 %101, label %110, label %102

102:                                              ; preds = %98
  %103 = getelementptr inbounds nuw i64, ptr %2, i64 %99
  %104 = load i64, ptr %103, align 8
  %105 = icmp sgt i64 %104, 1
  br i1 %105, label %106, label %110

106:                                              ; preds = %102
  %107 = getelementptr inbounds nuw i64, ptr %3, i64 %99
  %108 = load i64, ptr %107, align 8
  %109 = or i64 %108, %100
  br label %110

110:                                              ; preds = %106, %102, %98
  %111 = phi i64 [ %109, %106 ], [ %100, %102 ], [ %100, %98 ]
  %112 = add nuw nsw i64 %99, 1
  %113 = icmp eq i64 %112, %7
  br i1 %113, label %114, label %98

114:                                              ; preds = %110, %94
  %115 = phi i64 [ 0, %94 ], [ %111, %110 ]
  %116 = getelementptr inbounds nuw i8, ptr %0, i64 144
  %117 = load i64, ptr %116, align 8
  %118 = and i64 %117, %115
  %119 = icmp ne i64 %118, 0
  %120 = zext i1 %119 to i64
  %121 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %122 = load i64, ptr %121, align 8
  %123 = icmp eq i64 %122, %120
  br i1 %123, label %124, label %179

124:                                              ; preds = %114, %53
  store ptr %1, ptr %4, align 8
  %125 = icmp slt i64 %7, 1
  br i1 %125, label %179, label %126

126:                                              ; preds = %124
  %127 = shl nuw i64 %7, 1
  %128 = getelementptr inbounds nuw i8, ptr %0, i64 160
  %129 = getelementptr inbounds nuw i8, ptr %0, i64 120
  %130 = tail call i64 @llvm.smax.i64(i64 %127, i64 1)
  br label %131

131:                                              ; preds = %126, %175
  %132 = phi ptr [ %4, %126 ], [ %176, %175 ]
  %133 = phi i64 [ 0, %126 ], [ %177, %175 ]
  %134 = getelementptr inbounds nuw %struct.Leaf, ptr %128, i64 %133
  %135 = icmp slt i64 %133, %7
  %136 = getelementptr inbounds nuw i64, ptr %2, i64 %133
  %137 = sub nsw i64 %133, %7
  %138 = getelementptr inbounds nuw i64, ptr %3, i64 %137
  %139 = select i1 %135, ptr %136, ptr %138
  %140 = load i64, ptr %139, align 8
  br i1 %135, label %145, label %141

141:                                              ; preds = %131
  %142 = getelementptr inbounds nuw i64, ptr %2, i64 %137
  %143 = load i64, ptr %142, align 8
  %144 = icmp sgt i64 %143, 1
  br label %145

145:                                              ; preds = %141, %131
  %146 = phi i1 [ true, %131 ], [ %144, %141 ]
  %147 = load i64, ptr %134, align 8
  %148 = icmp eq i64 %147, 0
  br i1 %148, label %154, label %149

149:                                              ; preds = %145
  %150 = getelementptr inbounds nuw i8, ptr %134, i64 8
  %151 = load i64, ptr %150, align 8
  %152 = icmp ne i64 %140, %151
  %153 = select i1 %152, i1 %146, i1 false
  br i1 %153, label %179, label %175

154:                                              ; preds = %145
  %155 = load i64, ptr %54, align 8
  %156 = icmp eq i64 %155, 0
  br i1 %156, label %157, label %165

157:                                              ; preds = %154
  %158 = getelementptr inbounds nuw i8, ptr %134, i64 8
  %159 = load i64, ptr %158, align 8
  %160 = icmp ne i64 %159, 1
  %161 = select i1 %160, i1 %146, i1 false
  br i1 %161, label %162, label %165

162:                                              ; preds = %157
  %163 = srem i64 %140, %159
  %164 = icmp eq i64 %163, 0
  br i1 %164, label %165, label %179

165:                                              ; preds = %162, %157, %154
  %166 = getelementptr inbounds nuw i8, ptr %132, i64 8
  %167 = load i64, ptr %129, align 8
  %168 = icmp eq i64 %167, 8
  br i1 %168, label %169, label %170

169:                                              ; preds = %165
  store i64 %140, ptr %166, align 8
  br label %175

170:                                              ; preds = %165
  %171 = add i64 %140, 2147483648
  %172 = icmp ult i64 %171, 4294967296
  br i1 %172, label %173, label %179

173:                                              ; preds = %170
  %174 = trunc nsw i64 %140 to i32
  store i32 %174, ptr %166, align 4
  br label %175

175:                                              ; preds = %173, %169, %149
  %176 = phi ptr [ %132, %149 ], [ %166, %173 ], [ %166, %169 ]
  %177 = add nuw nsw i64 %133, 1
  %178 = icmp eq i64 %177, %130
  br i1 %178, label %179, label %131

179:                                              ; preds = %149, %170, %162, %175, %124, %94, %114, %83, %47, %5
  %180 = phi i64 [ 0, %5 ], [ 0, %47 ], [ 0, %83 ], [ 0, %114 ], [ 0, %94 ], [ 1, %124 ], [ 0, %149 ], [ 0, %170 ], [ 0, %162 ], [ 1, %175 ]
  ret i64 %180
}

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)

declare i64 @llvm.abs.i64(i64, i1 immarg)

declare i64 @llvm.smax.i64(i64, i64)
